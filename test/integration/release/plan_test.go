package release

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	apimeta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/cli"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// plan returns the plan for the objects of the scene.
func (s *scene) plan(config *rest.Config) inspect.ResourcePlan {
	s.t.Helper()
	c, err := inspect.Connect(s.t.Context(), config, s.program())
	s.Expect(err).NotTo(gomega.HaveOccurred())
	plan, err := c.NewPlan(s.t.Context(), s.namespace)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(plan.Resources).To(gomega.HaveLen(1))
	return plan.Resources[0]
}

// version declares handlers that note their calls; waits is the id of one that does not succeed.
func (s *scene) version(calls *operators.Calls, create, update, waits string) {
	s.registry = kopf.NewRegistry()
	note := func(id string) func(context.Context, *kopf.Change) error {
		return func(_ context.Context, c *kopf.Change) error {
			calls.Note("%s %s %s", id, c.Reason(), c.Name())
			if id == waits && c.Name() == "waiting" {
				return kopf.Temporary(fmt.Errorf("not yet"), time.Hour)
			}
			return nil
		}
	}
	s.registry.OnCreate(s.things(), note(create), kopf.ID(create))
	s.registry.OnUpdate(s.things(), note(update), kopf.ID(update))
	s.registry.OnUpdate(s.things(), note("stays"), kopf.ID("stays"))
	s.registry.OnResume(s.things(), note("back"), kopf.ID("back"))
}

func (s *scene) start() *operators.Operator {
	return operators.Start(s.t, cluster.Config(), s.namespace, s.registry, func(o *kopf.Options) { o.Settings.Peering.Name = s.namespace })
}

// TestThePlanOfAnUpgradeIsWhatHappens renames handlers: one that waits, and one that has ended.
func TestThePlanOfAnUpgradeIsWhatHappens(t *testing.T) {
	s := newScene(t, true)
	change := func(name string) {
		_, err := s.objects.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"size":2}}`), apimeta.PatchOptions{})
		s.Expect(err).NotTo(gomega.HaveOccurred())
	}
	before := &operators.Calls{}
	s.version(before, "create", "oldUpdate", "oldUpdate")
	operator := s.start()
	for _, name := range []string{"handled", "changed", "waiting"} {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
		obj.SetGroupVersionKind(s.resource.GroupVersion().WithKind(s.kind))
		obj.SetName(name)
		_, err := s.objects.Create(t.Context(), obj, apimeta.CreateOptions{})
		s.Expect(err).NotTo(gomega.HaveOccurred())
	}
	annotationsOf := func(name string) func() map[string]string {
		return func() map[string]string {
			obj, err := s.objects.Get(t.Context(), name, apimeta.GetOptions{})
			s.Expect(err).NotTo(gomega.HaveOccurred())
			return obj.GetAnnotations()
		}
	}
	for _, name := range []string{"handled", "changed", "waiting"} {
		s.Eventually(annotationsOf(name)).Should(gomega.HaveKey(prefix + "last-handled-configuration"))
	}
	change("waiting")
	s.Eventually(annotationsOf("waiting")).Should(gomega.HaveKey(prefix + "oldUpdate"))
	operator.Stop()
	change("changed")

	after := &operators.Calls{}
	s.version(after, "newCreate", "newUpdate", "")
	plan := s.plan(cluster.Config())
	s.Expect(plan.Calls).To(gomega.Equal(map[string]int{"newUpdate": 2, "stays": 1, "back": 3}))
	s.Expect([]int{plan.Objects, plan.Creations, plan.Updates, plan.Deletions, plan.Continued}).To(gomega.Equal([]int{3, 0, 1, 0, 1}))
	s.Expect(plan.Undeclared).To(gomega.Equal(map[string]int{"oldUpdate": 1}))
	s.start()
	want := 0
	for _, number := range plan.Calls {
		want += number
	}
	s.Eventually(after.All).Should(gomega.HaveLen(want))
	s.Eventually(func() inspect.ResourcePlan { return s.plan(cluster.Config()) }).Should(gomega.And(
		gomega.HaveField("Updates", 0), gomega.HaveField("Continued", 0)))
	got := map[string]int{}
	for _, call := range after.All() {
		id, _, _ := strings.Cut(call, " ")
		got[id]++
	}
	s.Expect(got).To(gomega.Equal(plan.Calls))
}

// A plan for an operator that does not start is no plan without changes, and none with them.
func TestAPlanWithAnExitCode(t *testing.T) {
	s := newScene(t, false)
	s.registry.OnUpdate(s.things(), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("update"))
	none := s.command("plan", "-n", s.namespace, "--exit-code")
	s.Expect(none.err).NotTo(gomega.HaveOccurred())
	for _, name := range []string{"one", "two", "three"} {
		obj := testenv.NewObject(s.kind, s.namespace, name, nil)
		obj.SetAPIVersion(s.resource.GroupVersion().String())
		s.Expect(cluster.Client().Create(t.Context(), obj)).To(gomega.Succeed())
	}
	changes := s.command("plan", "-n", s.namespace, "--exit-code", "--examples=1")
	s.Expect(cli.ExitCode(changes.err)).To(gomega.Equal(3))
	s.Expect(changes.out).To(gomega.HaveSuffix("\n  - " + s.namespace + "/one: create\n  - and 2 more\n\nNotes\n  - Sub-handlers and children are known only when their parents run, and are not counted.\n"))
	s.Expect(cli.ExitCode(s.command("plan", "--examples=-1").err)).To(gomega.Equal(cli.ExitUsage))

	s.registry.Conditions(s.things())
	refused := s.command("plan", "-n", s.namespace, "--exit-code")
	s.Expect(cli.ExitCode(refused.err)).To(gomega.Equal(cli.ExitError))
	s.Expect(refused.out).To(gomega.ContainSubstring("\nNothing happens, because\n  - The operator does not start: "))
	s.Expect(s.command("plan", "-n", s.namespace).err).NotTo(gomega.HaveOccurred())
}

// TestAPlanForManyObjects reports how long it takes, and how much memory.
func TestAPlanForManyObjects(t *testing.T) {
	const number, page, limit = 10_000, 250, 200 << 20
	s := newScene(t, true)
	s.create(number, func(obj *unstructured.Unstructured) { // in the middle of their creation
		annotations := obj.GetAnnotations()
		delete(annotations, prefix+"last-handled-configuration")
		obj.SetAnnotations(annotations)
	})
	debug.FreeOSMemory()
	config, requests := counted()
	before, peak := heap(), peakOfHeap(t)
	began := time.Now()
	plan := s.plan(config)
	took, used := time.Since(began), peak()-before
	t.Logf("a plan for %d objects takes %v and %d MiB", number, took.Round(time.Millisecond), used>>20)
	s.Expect(plan.Objects).To(gomega.Equal(number))
	s.Expect(plan.Continued).To(gomega.Equal(number))
	s.Expect(plan.Calls).To(gomega.Equal(map[string]int{"fn": number}))
	lists := 0
	for _, request := range requests.Requests() {
		if request.Resource == "things" {
			s.Expect(request.Method).To(gomega.Equal(testenv.MethodList))
			s.Expect(request.URI).To(gomega.ContainSubstring(fmt.Sprintf("limit=%d", page)))
			lists++
		}
	}
	s.Expect(lists).To(gomega.Equal(number / page))
	s.Expect(used).To(gomega.BeNumerically("<", limit))
}

// heap returns the size of the heap in bytes.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// peakOfHeap samples the size of the heap until the returned function is called.
func peakOfHeap(t *testing.T) func() uint64 {
	var most uint64
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				most = max(most, heap())
			}
		}
	}()
	end := sync.OnceFunc(func() { close(done); <-stopped })
	t.Cleanup(end)
	return func() uint64 { end(); return max(most, heap()) }
}

// proxy stands between commands and the API server, and records the requests.
type proxy struct {
	mu       sync.Mutex
	requests []string
}

// start serves the proxy, and returns a kubeconfig for it.
func (p *proxy) start(t *testing.T) string {
	t.Helper()
	config := cluster.Config()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.requests = append(p.requests, r.Method+" "+r.URL.Path)
		p.mu.Unlock()
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	made := api.NewConfig()
	made.Clusters["a"], made.CurrentContext = &api.Cluster{Server: server.URL}, "a"
	made.Contexts["a"] = &api.Context{Cluster: "a"}
	if err := clientcmd.WriteToFile(*made, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommandsThatLookOnlyRead(t *testing.T) {
	s := newScene(t, true)
	s.create(2)
	for name, arguments := range map[string][]string{
		"explain": {"things." + s.resource.Group + "/a00000", "-n", s.namespace}, "plan": nil, "rbac": nil,
		"peers": {"-n", s.namespace}, "release": {"--all", "--dry-run", "--operator-stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &proxy{}
			path := p.start(t)
			for _, command := range kopf.Commands(func(o *kopf.Options) { o.Registry, o.Settings = s.registry, s.settings }) {
				if command.Name() != name {
					continue
				}
				var out bytes.Buffer
				command.SetOut(&out)
				command.SetErr(os.Stderr)
				command.SetArgs(append(arguments, "--kubeconfig", path))
				if err := command.ExecuteContext(t.Context()); err != nil || out.Len() == 0 {
					t.Fatalf("got %q, %v", out.String(), err)
				}
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.requests) < 3 {
				t.Errorf("got %q", p.requests)
			}
			for _, request := range p.requests {
				isReview := strings.HasPrefix(request, "POST /apis/authorization.k8s.io/v1/selfsubject") || strings.HasPrefix(request, "POST /apis/authentication.k8s.io/v1/selfsubject")
				if !strings.HasPrefix(request, "GET ") && !isReview {
					t.Errorf("got the request %s", request)
				}
			}
		})
	}
}
