// Package languages runs operators whose handlers are not written in Go, as their users do: by the command
// kopf serve, on a real API server.
package languages

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopftest"
)

const patience = time.Minute

// bench is what the examples share: a cluster, and the program kopf.
type bench struct {
	config     *rest.Config
	client     client.Client
	program    string
	kubeconfig string
}

func TestLanguages(t *testing.T) {
	b := newBench(t)
	for folder, test := range map[string]struct {
		needs string
		run   func(*testing.T, *operator)
	}{
		"shell":  {"sh", testShell},
		"python": {"python3", testPython},
		"node":   {"node", testNode},
		"side8":  {"sh", testSide8},
	} {
		t.Run(folder, func(t *testing.T) {
			if _, err := exec.LookPath(test.needs); err != nil {
				t.Logf("NOT TESTED: there is no %s in the PATH, so nothing runs the example %s", test.needs, folder)
				return
			}
			test.run(t, b.start(t, "languages-"+folder, folder))
		})
	}
	t.Run("metacontroller", b.testMetacontroller)
	t.Run("controllers of the cluster", b.testControllersOfTheCluster)
	t.Run("steps that fail", b.testFailingSteps)
	t.Run("admission", b.testAdmission)
	t.Run("changed files", b.testChangedFiles)
	t.Run("a killed operator", b.testKilledOperator)
	t.Run("questions", b.testQuestions)
	t.Run("a restarted worker", b.testRestartedWorker)
	t.Run("memos of deleted objects", b.testMemosOfDeletedObjects)
	t.Run("filters that are functions", b.testFilters)
	t.Run("sub-handlers in the middle", b.testExecute)
	t.Run("daemons and changes", b.testDaemons)
	t.Run("indices", b.testIndices)
	t.Run("family", b.testFamily)
	t.Run("places of mistakes", b.testPlaces)
}

// The adapter for Python has tests of its own.
func TestTheAdapterForPython(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Log("NOT TESTED: there is no python3 in the PATH, so nothing tests the adapter")
		return
	}
	command := exec.CommandContext(t.Context(), "python3", "-B", "-m", "unittest", "-v")
	command.Dir = "python"
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "test_differences_have_names") {
		t.Errorf("%v\n%s", err, output)
	}
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{config: kopftest.Cluster(t, "../crd"), program: filepath.Join(t.TempDir(), "kopf"), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if output, err := exec.Command("go", "build", "-o", b.program, "../../cmd/kopf").CombinedOutput(); err != nil {
		t.Fatalf("kopf cannot be built: %v\n%s", err, output)
	}
	var err error
	b.client, err = client.New(b.config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["test"] = &clientcmdapi.Cluster{Server: b.config.Host, CertificateAuthorityData: b.config.CAData}
	kubeconfig.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: b.config.CertData, ClientKeyData: b.config.KeyData}
	kubeconfig.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	kubeconfig.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*kubeconfig, b.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return b
}

// operator is a running kopf serve, in a namespace of its own.
type operator struct {
	*bench
	gomega.Gomega
	t      testing.TB
	folder string
	name   string // of the namespace
	object *unstructured.Unstructured
	flags  []string

	process *exec.Cmd
	mu      sync.Mutex
	log     bytes.Buffer
}

// Write collects the log.
func (o *operator) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.Write(data)
}

func (o *operator) output() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.String()
}

// start starts an operator, and creates its object.
func (b *bench) start(t testing.TB, namespace, folder string, flags ...string) *operator {
	t.Helper()
	o := &operator{bench: b, Gomega: gomega.NewWithT(t), t: t, folder: folder, name: namespace, flags: flags}
	created := kopftest.Object(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + o.name + `}}`)
	o.Expect(b.client.Create(t.Context(), created)).To(gomega.Succeed())
	text, err := os.ReadFile(filepath.Join(folder, "obj.yaml"))
	o.Expect(err).NotTo(gomega.HaveOccurred())
	o.object = kopftest.Object(string(text))
	o.object.SetNamespace(o.name)
	o.run()
	t.Cleanup(o.stop)
	o.Expect(b.client.Create(t.Context(), o.object)).To(gomega.Succeed())
	return o
}

// run runs the program.
func (o *operator) run() {
	o.t.Helper()
	arguments := []string{"serve", "-n", o.name, "--standalone", "--kubeconfig", o.kubeconfig}
	if o.folder != "" {
		arguments = append(arguments, filepath.Join(o.folder, "operator.yaml"))
	}
	o.process = exec.Command(o.program, append(arguments, o.flags...)...)
	o.process.Stdout, o.process.Stderr = o, o
	o.Expect(o.process.Start()).To(gomega.Succeed())
	o.says("The operator is running.")
}

// stop interrupts the program, as Kubernetes does.
func (o *operator) stop() {
	if o.process.ProcessState != nil {
		return
	}
	o.Expect(o.process.Process.Signal(syscall.SIGTERM)).To(gomega.Succeed())
	o.Expect(o.process.Wait()).To(gomega.Succeed(), "%s", o.output())
}

// says waits for lines of the log.
func (o *operator) says(texts ...string) {
	o.t.Helper()
	for _, text := range texts {
		o.Eventually(o.output, patience).Should(gomega.ContainSubstring(text))
	}
}

// change changes the object.
func (o *operator) change(merge string) {
	o.t.Helper()
	o.Expect(o.client.Patch(o.t.Context(), o.object, client.RawPatch("application/merge-patch+json", []byte(merge)))).To(gomega.Succeed())
}

// field returns a field of the object as it is now.
func (o *operator) field(path ...string) func() (any, error) {
	return func() (any, error) {
		current := o.object.DeepCopy()
		if err := o.client.Get(context.Background(), client.ObjectKeyFromObject(o.object), current); err != nil {
			return nil, err
		}
		value, _, err := unstructured.NestedFieldNoCopy(current.Object, path...)
		return value, err
	}
}

// remove deletes the object, and waits until it is gone.
func (o *operator) remove() {
	o.t.Helper()
	o.Expect(o.client.Delete(o.t.Context(), o.object)).To(gomega.Succeed())
	o.Eventually(func() bool {
		err := o.client.Get(context.Background(), client.ObjectKeyFromObject(o.object), o.object.DeepCopy())
		return apierrors.IsNotFound(err)
	}, patience).Should(gomega.BeTrue())
}

func testShell(_ *testing.T, o *operator) {
	o.says("The daemon runs.", "A new object: languages-shell/kopf-example-1.", "The first attempt fails.", "The creation is processed: 1 succeeded; 0 failed.")
	o.Eventually(o.field("status", "create_fn", "message"), patience).Should(gomega.Equal("created by a shell"))
	o.Expect(o.field("metadata", "labels", "handled-by")()).To(gomega.Equal("shell"))
	o.change(`{"spec": {"field": "another value"}}`)
	o.says(`"diff":[["change",[],"value","another value"]]`)
	o.remove()
	o.says("Gone: kopf-example-1.", "The daemon ends.")
}

func testPython(_ *testing.T, o *operator) {
	o.says("kopf-example-1 has 2 items.", "The first attempt fails.", "The item a is prepared.", "The item b is prepared.")
	o.Eventually(o.field("status", "create_fn/a", "prepared"), patience).Should(gomega.Equal("a"))
	o.Eventually(o.field("status", "create_fn", "retries"), patience).Should(gomega.Equal(int64(1)))
	o.Expect(o.field("status", "greeting")()).To(gomega.Equal("hello"))
	o.Eventually(o.field("status", "ticks"), patience).Should(gomega.BeNumerically(">", 1))
	o.change(`{"spec": {"size": 2}}`)
	o.Eventually(o.field("status", "resize/spec.size", "to"), patience).Should(gomega.Equal(int64(2)))
	o.says("Standard output is free for people.")

	// Another operator continues: what is handled is not handled again, and the daemon begins again.
	o.stop()
	before := len(o.output())
	o.Expect(o.output()).To(gomega.ContainSubstring("The daemon ends: DaemonStoppingReason."))
	o.run()
	o.Eventually(func() string { return o.output()[before:] }, patience).Should(gomega.ContainSubstring("The resuming is processed"))
	o.Expect(o.output()[before:]).NotTo(gomega.ContainSubstring("The creation is"))
	o.remove()
	o.says("Deleted.", "RESOURCE_DELETED")
}

func testNode(t *testing.T, o *operator) {
	o.says("kopf-example-1 is new.", "The first attempt fails.")
	o.Eventually(o.field("status", "create", "greeting"), patience).Should(gomega.Equal("hello"))
	o.change(`{"spec": {"size": 2}}`)
	events := &unstructured.UnstructuredList{}
	events.SetAPIVersion("v1")
	events.SetKind("EventList")
	o.Eventually(func() (string, error) {
		var all []string
		err := o.client.List(t.Context(), events, client.InNamespace(o.name))
		for _, event := range events.Items {
			message, _, _ := unstructured.NestedString(event.Object, "message")
			all = append(all, message)
		}
		return strings.Join(all, "\n"), err
	}, patience).Should(gomega.ContainSubstring("from 1 to 2"))
	o.change(`{"spec": {"size": -1}}`)
	o.says("The size is negative.", "The update is processed: 0 succeeded; 1 failed.")
}

func testSide8(_ *testing.T, o *operator) {
	o.says("apply: size 1, phase none", "apply: size 1, phase creating", "apply: size 1, phase ready")
	o.Eventually(o.field("status", "phase"), patience).Should(gomega.Equal("ready"))
	o.change(`{"spec": {"size": 2}}`)
	o.Eventually(o.field("status", "size"), patience).Should(gomega.Equal(int64(2)))
	steps := strings.Count(o.output(), "apply: ")
	o.Consistently(func() int { return strings.Count(o.output(), "apply: ") }, "3s").Should(gomega.BeNumerically("<=", steps+1), "the last step changes nothing")

	// Another operator looks at the object again, as the first one did.
	o.stop()
	before := len(o.output())
	o.run()
	o.Eventually(func() string { return o.output()[before:] }, patience).Should(gomega.ContainSubstring("apply: size 2, phase ready"))
	o.remove()
	o.says("delete: phase ready", "delete: phase draining")
}

// testMetacontroller runs the example of a controller of Metacontroller, with its hook at another port.
func (b *bench) testMetacontroller(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Log("NOT TESTED: there is no python3 in the PATH, so nothing runs the hook of the example metacontroller")
		return
	}
	g := gomega.NewWithT(t)
	free, err := net.Listen("tcp", "localhost:0")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, port, err := net.SplitHostPort(free.Addr().String())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(free.Close()).To(gomega.Succeed())
	dir := t.TempDir()
	for _, name := range []string{"operator.yaml", "obj.yaml"} {
		text, err := os.ReadFile(filepath.Join("metacontroller", name))
		g.Expect(err).NotTo(gomega.HaveOccurred())
		write(t, dir, map[string]string{name: strings.ReplaceAll(string(text), "8080", port)})
	}
	hook := exec.Command("python3", "-B", "metacontroller/hook.py", port)
	output, err := hook.StdoutPipe()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	hook.Stderr = os.Stderr
	g.Expect(hook.Start()).To(gomega.Succeed())
	t.Cleanup(func() { _ = hook.Process.Kill() }) // it may have ended
	said := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(output)
		said <- string(text)
	}()

	o := b.start(t, "languages-metacontroller", dir)
	o.Eventually(o.field("status", "pages"), patience).Should(gomega.Equal(int64(2)))
	page := func(name string) func() (string, error) {
		return func() (string, error) {
			found := &unstructured.Unstructured{}
			found.SetAPIVersion("v1")
			found.SetKind("ConfigMap")
			err := b.client.Get(context.Background(), client.ObjectKey{Namespace: o.name, Name: "kopf-example-1-" + name}, found)
			text, _, _ := unstructured.NestedString(found.Object, "data", "text")
			return text, err
		}
	}
	o.change(`{"spec": {"pages": {"second": "Universe", "third": "!"}}}`)
	o.Eventually(page("second"), patience).Should(gomega.Equal("Universe"))
	o.Eventually(o.field("status", "pages"), patience).Should(gomega.Equal(int64(3)))
	o.remove()
	o.stop()
	o.Expect(hook.Process.Kill()).To(gomega.Succeed())
	lines := slices.Compact(strings.Split(strings.TrimSpace(<-said), "\n")) // a hook can be called again without a difference
	o.Expect(lines).To(gomega.Equal([]string{
		"These pages are left: ['kopf-example-1-first', 'kopf-example-1-second', 'kopf-example-1-third']",
		"These pages are left: ['kopf-example-1-first', 'kopf-example-1-second']", "These pages are left: ['kopf-example-1-first']", "These pages are left: []",
	}))
	_ = hook.Wait() // it was killed
}

// testControllersOfTheCluster runs controllers of Metacontroller that are objects, and change.
func (b *bench) testControllersOfTheCluster(t *testing.T) {
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"status": {"hook": %q}}`, r.URL.Path)
	}))
	t.Cleanup(hooks.Close)
	o := &operator{bench: b, Gomega: gomega.NewWithT(t), t: t, name: "languages-controllers", flags: []string{"--metacontroller"}}
	create := func(text string, values ...any) *unstructured.Unstructured {
		created := kopftest.Object(fmt.Sprintf(text, values...))
		o.Eventually(func() error { return b.client.Create(t.Context(), created) }, patience).Should(gomega.Succeed()) // when its definition is served
		return created
	}
	create("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", o.name)
	for _, kind := range []string{"CompositeController", "DecoratorController"} {
		singular := strings.ToLower(kind)
		create(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.metacontroller.k8s.io, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: metacontroller.k8s.io
  scope: Cluster
  names: {kind: %[2]s, singular: %[1]s, plural: %[1]ss}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, singular, kind)
	}
	controller := func(name, path, more string) string {
		return fmt.Sprintf(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: %s}
spec:
  generateSelector: true
  parentResource: {apiVersion: kopf.dev/v1, resource: kopfexamples}
  hooks: {sync: {webhook: {url: "%s/%s"}}}
%s`, name, hooks.URL, path, more)
	}
	first := create("%s", controller("first", "one", ""))
	o.object = create("{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: kopf-example-1, namespace: %s}}", o.name)
	o.run()
	t.Cleanup(o.stop)
	o.Eventually(o.field("status", "hook"), patience).Should(gomega.Equal("/one"))
	create("%s", controller("broken", "two", "  childResources: [{apiVersion: v1, resource: pods, updateStrategy: {method: RollingInPlace}}]\n"))
	o.says("A controller of the cluster cannot be used.", "the method RollingInPlace is not supported")
	changed := client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(`{"spec": {"hooks": {"sync": {"webhook": {"url": "%s/two"}}}}}`, hooks.URL)))
	o.Expect(b.client.Patch(t.Context(), first, changed)).To(gomega.Succeed())
	o.Eventually(o.field("status", "hook"), patience).Should(gomega.Equal("/two"))
	o.Expect(b.client.Delete(t.Context(), first)).To(gomega.Succeed())
	o.Eventually(func() int { return strings.Count(o.output(), "The operator is running.") }, patience).Should(gomega.Equal(4))
	o.remove()
}

// testFailingSteps runs programs that fail, or write what is no status, and later do not.
func (b *bench) testFailingSteps(t *testing.T) {
	dir := t.TempDir()
	const once = "#!/bin/sh\n[ -e \"$0.ok\" ] || { touch \"$0.ok\"; "
	write(t, dir, map[string]string{
		"obj.yaml":      object,
		"operator.yaml": "kopf: v1\nsettings: {execution: {backoff: 1s}}\nside8:\n- {resource: kopfexamples.kopf.dev, apply: [./apply], delete: [./delete]}\n",
		"apply":         once + "echo broken >&2; exit 3; }\necho 'phase: ready'\n",
		"delete":        once + "echo done; exit 0; }\n",
	})
	o := b.start(t, "languages-steps", dir)
	o.says("exit status 3: broken")
	o.Eventually(o.field("status", "phase"), patience).Should(gomega.Equal("ready"))
	o.remove()
	o.says("the output is no mapping: the status has fields")
}

// write writes the files of an operator.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

const object = "apiVersion: kopf.dev/v1\nkind: KopfExample\nmetadata: {name: kopf-example-1}\nspec: {}\n"

// testAdmission asks programs about objects before these are stored.
func (b *bench) testAdmission(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"obj.yaml": object,
		"operator.yaml": "kopf: v1\nsettings: {name: admitting}\nhandlers:\n- {validate: kopfexamples.kopf.dev, id: check, run: [./check]}\n" +
			"- {mutate: kopfexamples.kopf.dev, id: paint, operations: [CREATE], run: [./paint]}\n",
		"check": "#!/bin/sh\nif grep -q '\"size\":13'; then\n  echo '{\"error\": {\"message\": \"Choose another size.\", \"code\": 422}}'\nfi\n",
		"paint": "#!/bin/sh\necho '{\"patch\": {\"spec\": {\"color\": \"grey\"}}}'\n",
	})
	o := b.start(t, "languages-admission", dir)
	o.says("The cluster calls the admission handlers.")
	o.Eventually(func() (any, error) { // until the API server knows the configurations
		painted := o.object.DeepCopy()
		painted.SetName("painted")
		painted.SetResourceVersion("")
		err := b.client.Create(t.Context(), painted, client.DryRunAll)
		color, _, _ := unstructured.NestedString(painted.Object, "spec", "color")
		return color, err
	}, patience).Should(gomega.Equal("grey"))
	err := b.client.Patch(t.Context(), o.object, client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"size": 13}}`)))
	o.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("Choose another size.")))
	o.change(`{"spec": {"size": 12}}`)

	// Without a name, the configurations could not have one.
	write(t, dir, map[string]string{"nameless.yaml": "kopf: v1\nhandlers:\n- {validate: kopfexamples.kopf.dev, id: check, run: [./check]}\n"})
	output, err := exec.Command(b.program, "serve", filepath.Join(dir, "nameless.yaml"), "--kubeconfig", b.kubeconfig).CombinedOutput()
	o.Expect(err).To(gomega.HaveOccurred())
	o.Expect(string(output)).To(gomega.ContainSubstring(`nameless.yaml:3: the validate handler "check" needs a name for the webhook configurations: add settings: {name: my-operator}`))
}

// testChangedFiles changes the files of an operator with --watch, also in the middle of a call.
func (b *bench) testChangedFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"obj.yaml":      object,
		"operator.yaml": "kopf: v1\nhandlers:\n- {create: kopfexamples, id: slow, run: [./slow.sh]}\n",
		"slow.sh":       "#!/bin/sh\necho begun >&2\nwhile [ ! -e \"$0.end\" ]; do sleep 0.1; done\necho ended >&2\n",
	})
	o := b.start(t, "languages-watch", dir, "--watch")
	o.says("begun")
	write(t, dir, map[string]string{"operator.yaml": "kopf: v1\nhandlers:\n- {craete: kopfexamples, id: slow, run: [./slow.sh]}\n"})
	o.says("The changed files have mistakes. The operator continues as it was.", "did you mean create?")
	write(t, dir, map[string]string{"operator.yaml": "kopf: v1\nhandlers:\n- {resume: kopfexamples, id: again, run: [sh, -c, 'echo again >&2']}\n"})
	o.says("The operator begins again when the calls that run have ended.")
	o.Consistently(o.output, "1s").ShouldNot(gomega.Or(gomega.ContainSubstring("ended"+"\t"), gomega.ContainSubstring("The operator is stopping.")))
	write(t, dir, map[string]string{"slow.sh.end": ""})
	o.says("] ended", "The creation is processed: 1 succeeded; 0 failed.", "] again")
	o.Expect(strings.Count(o.output(), "] begun")).To(gomega.Equal(1), "the call was interrupted:\n%s", o.output())
}

// testKilledOperator kills an operator whose worker and program have started processes of their own.
func (b *bench) testKilledOperator(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"obj.yaml":      object,
		"operator.yaml": "kopf: v1\nworkers: {w: {command: [./worker.sh]}}\nhandlers:\n- {daemon: kopfexamples, id: d, run: [./daemon.sh]}\n",
		"worker.sh":     "#!/bin/sh\ntrap '' TERM\nsleep 1000 &\necho $$ $! >worker\necho '{\"type\": \"hello\", \"version\": 1}'\nwhile :; do sleep 1; done\n",
		"daemon.sh":     "#!/bin/sh\ntrap '' TERM\nsleep 1000 &\necho $$ $! >daemon\nwhile :; do sleep 1; done\n",
	})
	o := b.start(t, "languages-killed", dir)
	var pids []int
	for _, name := range []string{"worker", "daemon"} {
		var program, background int
		o.Eventually(func() error {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil {
				_, err = fmt.Sscan(string(text), &program, &background)
			}
			return err
		}, patience).Should(gomega.Succeed())
		pids = append(pids, program, background)
	}
	o.Expect(o.process.Process.Kill()).To(gomega.Succeed())
	_ = o.process.Wait() // it was killed
	for _, pid := range pids {
		o.Eventually(func() bool { return runs(pid) }, patience).Should(gomega.BeFalse(), "the process %d has outlived the operator", pid)
	}
}

// runs reports whether a process runs, and is no zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	return !strings.Contains(string(stat), ") Z ")
}

// testQuestions asks the commands about the operators of files.
func (b *bench) testQuestions(t *testing.T) {
	g := gomega.NewWithT(t)
	ask := func(arguments ...string) string {
		output, err := exec.Command(b.program, append(arguments, "--kubeconfig", b.kubeconfig)...).CombinedOutput()
		g.Expect(err).NotTo(gomega.HaveOccurred(), "%s", output)
		return string(output)
	}
	created := kopftest.Object(object)
	created.SetNamespace("default")
	g.Expect(b.client.Create(t.Context(), created)).To(gomega.Succeed())
	g.Expect(ask("explain", "node/operator.yaml", "kopfexample/kopf-example-1", "-n", "default")).To(gomega.ContainSubstring("create"))
	g.Expect(ask("rbac", "shell/operator.yaml")).To(gomega.And(gomega.ContainSubstring("kopfexamples"), gomega.ContainSubstring("patch")))
	variables := t.TempDir()
	write(t, variables, map[string]string{"operator.yaml": "kopf: v1\nhandlers:\n- {create: kopfexamples.v1.kopf.dev, id: fn, run: [env], environment: [DATABASE_URL]}\n"})
	g.Expect(ask("manifests", filepath.Join(variables, "operator.yaml"), "--name", "shops", "--namespace", "stores")).To(gomega.And(
		gomega.ContainSubstring("create secret generic shops-environment --namespace stores"), gomega.ContainSubstring(`{name: "DATABASE_URL", valueFrom: {secretKeyRef: `),
	))
	g.Expect(ask("rbac", "metacontroller/operator.yaml")).To(gomega.And(
		gomega.ContainSubstring("resources: [configmaps]"), gomega.ContainSubstring("verbs: [get, create, update, delete]"), gomega.ContainSubstring("metacontroller/operator.yaml:5")))
	broken := t.TempDir()
	write(t, broken, map[string]string{"operator.yaml": "kopf: v1\nworkers: {w: {command: [sh, -c, 'echo no module >&2; exit 1']}}\n"})
	output, err := exec.Command(b.program, "rbac", filepath.Join(broken, "operator.yaml")).CombinedOutput()
	g.Expect(err).To(gomega.HaveOccurred())
	g.Expect(string(output)).To(gomega.ContainSubstring("does not work: exit status 1: no module"))
	g.Expect(ask("plan", "shell/operator.yaml", "-n", "default")).To(gomega.ContainSubstring("kopfexamples"))
}
