// Package page tests the page of an operator against an API server.
package page

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/cli"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/page"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{Parallel: 4, CRDs: []string{"config/crd/kopf.dev", testenv.ExampleCRDs, testenv.FixtureCRDs}})
}

var examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")

// newShop declares an operator whose objects come to several states, by their names.
func newShop() *kopf.Registry {
	registry := kopf.NewRegistry()
	registry.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		switch name := c.Name(); {
		case strings.HasPrefix(name, "waiting"):
			return kopf.Temporary(errors.New("the disk is not ready <b>yet</b>"), time.Hour)
		case strings.HasPrefix(name, "failed"):
			return kopf.Permanent(errors.New("there is no such disk"))
		default:
			return nil
		}
	}, kopf.ID("create"))
	registry.OnCreate(examples, func(context.Context, *kopf.Change) error {
		return kopf.Temporary(errors.New("it takes its time"), time.Hour)
	}, kopf.ID("slow"), kopf.Labels(map[string]kopf.Matcher{"slow": kopf.Present()}))
	registry.OnUpdate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("update"))
	registry.OnDelete(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("delete"))
	registry.OnCreate(kopf.Resource("v1", "secrets"), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("secret"))
	registry.OnUpdate(kopf.Resource("v1", "secrets"), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("changed"))
	return registry
}

// gallery is the name of the operators.
const gallery = "shop.example.com"

// scene is a page about the objects in a namespace, and a browser that was let in.
type scene struct {
	*gomega.WithT

	t         *testing.T
	namespace string
	inspected *inspect.Cluster
	address   string
	letIn     string // the address with the token
	browser   *http.Client
}

// open serves a page about the objects of a registry. It may send requests if they are wanted.
func open(t *testing.T, registry *kopf.Registry, namespace string, requests bool) *scene {
	t.Helper()
	return openWith(t, registry, namespace, func(o *page.Options) {
		if requests {
			o.Writing = rest.CopyConfig(cluster.Config())
		}
	})
}

// openWith serves a page with other options.
func openWith(t *testing.T, registry *kopf.Registry, namespace string, adjust func(*page.Options)) *scene {
	t.Helper()
	handlers, err := registry.Declarations().Handlers(nil)
	if err != nil {
		t.Fatal(err)
	}
	known := settings.Default()
	known.Name = gallery
	inspected, err := inspect.Connect(t.Context(), cluster.Config(), inspect.Program{Handlers: handlers, Settings: known})
	if err != nil {
		t.Fatal(err)
	}
	inspected.CommandLine = inspect.CommandLine{Pattern: "./my-operator COMMAND"}
	options := page.Options{Cluster: inspected, Token: page.NewToken(), Namespace: namespace, LeaseNamespace: namespace}
	adjust(&options)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- page.New(options).Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	cookies, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{gomega.NewWithT(t), t, namespace, inspected, "http://" + listener.Addr().String(), page.Address(listener.Addr().String(), options.Token), &http.Client{Jar: cookies}}
	s.Expect(s.get("/")).To(gomega.ContainSubstring("it has the token of the page"))
	s.Expect(s.get(strings.TrimPrefix(s.letIn, s.address))).To(gomega.ContainSubstring("Open the page"))
	return s
}

// get returns a page.
func (s *scene) get(path string) string {
	s.t.Helper()
	answer, err := s.browser.Get(s.address + path)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	return s.read(answer)
}

func (s *scene) read(answer *http.Response) string {
	s.t.Helper()
	text, err := io.ReadAll(answer.Body)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(answer.Body.Close()).To(gomega.Succeed())
	return string(text)
}

var rowPattern = regexp.MustCompile(`<tr id="row-[^"]+"><th scope="row"><a href="[^"]+">([^<]+)</a></th><td>[^<]*</td><td>[^<]*</td><td title="[^"]+"><span class="[^"]+">([^<]+)</span>`)

// rows returns the names and states on a page of objects.
func (s *scene) rows(query string) func() []string {
	return func() (rows []string) {
		for _, found := range rowPattern.FindAllStringSubmatch(s.get("/objects?"+query), -1) {
			rows = append(rows, found[1]+": "+found[2])
		}
		return rows
	}
}

func (s *scene) create(name string) client.Object {
	s.t.Helper()
	obj := testenv.NewObject("KopfExample", s.namespace, name, nil)
	s.Expect(cluster.Client().Create(s.t.Context(), obj)).To(gomega.Succeed())
	return obj
}

func (s *scene) patch(obj client.Object, body string) {
	s.t.Helper()
	s.Expect(cluster.Client().Patch(s.t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(body)))).To(gomega.Succeed())
}

func TestObjectsAreListedWithTheirStates(t *testing.T) {
	t.Parallel()
	registry := newShop()
	s := open(t, registry, cluster.Namespace(t), false)
	s.create("new")
	s.Eventually(s.rows("resource=kopfexamples.kopf.dev")).Should(gomega.Equal([]string{"new: due"}))

	operators.Start(t, cluster.Config(), s.namespace, registry)
	waiting := s.create("waiting")
	suspended := testenv.NewObject("KopfExample", s.namespace, "suspended", nil)
	suspended.SetAnnotations(map[string]string{"kopf.zalando.org/request-suspend": "forever"})
	s.Expect(cluster.Client().Create(t.Context(), suspended)).To(gomega.Succeed())
	failed := testenv.NewObject("KopfExample", s.namespace, "failed", nil)
	failed.SetLabels(map[string]string{"slow": ""})
	s.Expect(cluster.Client().Create(t.Context(), failed)).To(gomega.Succeed())
	all := []string{"failed: failed", "waiting: waiting", "suspended: suspended", "new: handled"}
	s.Eventually(s.rows("resource=kopfexamples.kopf.dev")).Should(gomega.Equal(all))

	// Filters.
	s.Expect(s.rows("state=waiting")()).To(gomega.Equal(all[1:2]))
	s.Expect(s.rows("name=ail&namespace=" + s.namespace)()).To(gomega.Equal(all[:1]))
	s.Expect(s.rows("namespace=elsewhere")()).To(gomega.BeEmpty())
	overview := s.get("/")
	s.Expect(overview).To(gomega.ContainSubstring(`<strong>1</strong> failed`))
	s.Expect(overview).To(gomega.ContainSubstring(`1 waiting</a>`))
	s.Expect(strings.Index(overview, "</strong> failed")).To(gomega.BeNumerically("<", strings.Index(overview, "</strong> waiting")))

	// An object shows what explain says.
	shown := s.get("/object?resource=kopfexamples.kopf.dev&name=waiting&namespace=" + s.namespace)
	said, err := s.inspected.Explain(t.Context(), inspect.Target{Kind: "kopfexamples.kopf.dev", Namespace: s.namespace, Name: "waiting"})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(said.Handlers).NotTo(gomega.BeEmpty())
	for _, h := range said.Handlers {
		s.Expect(shown).To(gomega.ContainSubstring(h.ID))
		message, _, _ := strings.Cut(h.Message, " (in ") // the time goes on
		s.Expect(shown).To(gomega.ContainSubstring(strings.ReplaceAll(message, "'", "&#39;")))
	}
	s.Expect(shown).To(gomega.ContainSubstring("the disk is not ready &lt;b&gt;yet&lt;/b&gt;"))
	s.Expect(shown).To(gomega.ContainSubstring("1 attempt, begun"))
	s.Expect(shown).To(gomega.ContainSubstring("./my-operator retry kopfexamples.kopf.dev/waiting -n " + s.namespace + " create"))
	s.Expect(shown).NotTo(gomega.ContainSubstring(`href="/request`))

	// A live change arrives.
	changes := s.listen("/changes?resource=kopfexamples.kopf.dev&name=waiting&namespace=" + s.namespace)
	s.patch(waiting, `{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":"forever"}}}`)
	s.Eventually(changes, testenv.Patience).Should(gomega.Receive(gomega.Equal("event: change")))
	s.Eventually(s.rows("name=waiting")).Should(gomega.Equal([]string{"waiting: suspended"}))
	s.Expect(cluster.Client().Delete(t.Context(), suspended)).To(gomega.Succeed())
	s.Eventually(s.rows("name=suspended")).Should(gomega.BeEmpty())
}

// listen opens a stream of changes, and waits until it is open. It returns its lines.
func (s *scene) listen(path string) <-chan string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.address+path, http.NoBody)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	answer, err := s.browser.Do(request)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(answer.Header.Get("Content-Type")).To(gomega.Equal("text/event-stream"))
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	lines := make(chan string, 100)
	go func() {
		for scanner := bufio.NewScanner(answer.Body); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	s.Eventually(lines).Should(gomega.Receive(gomega.Equal(": welcome")))
	return lines
}

func TestManyObjectsHavePages(t *testing.T) {
	t.Parallel()
	s := open(t, newShop(), cluster.Namespace(t), false)
	for i := range 130 {
		s.create(fmt.Sprintf("one-%03d", i))
	}
	first := s.rows("")
	s.Eventually(func() string { return s.get("/objects") }).Should(gomega.ContainSubstring("130 objects, page 1 of 2"))
	s.Expect(first()).To(gomega.HaveLen(100))
	s.Expect(s.rows("page=2")()).To(gomega.HaveLen(30))
	s.Expect(s.rows("page=2")()[29]).To(gomega.Equal("one-129: due"))
	s.Expect(s.rows("page=99")()).To(gomega.HaveLen(30))
}

func TestARequestIsSentIfItIsConfirmed(t *testing.T) {
	t.Parallel()
	registry := newShop()
	s := open(t, registry, cluster.Namespace(t), true)
	operator := operators.Start(t, cluster.Config(), s.namespace, registry)
	obj := testenv.NewObject("KopfExample", s.namespace, "waiting", nil)
	s.Expect(cluster.Client().Create(t.Context(), obj)).To(gomega.Succeed())
	s.Eventually(s.rows("")).Should(gomega.Equal([]string{"waiting: waiting"}))
	operator.Stop()

	shown := s.get("/object?resource=kopfexamples.kopf.dev&name=waiting&namespace=" + s.namespace)
	link := regexp.MustCompile(`href="(/request[^"]*verb=retry)"`).FindStringSubmatch(shown)
	s.Expect(link).NotTo(gomega.BeNil(), shown)
	asked := s.get(strings.ReplaceAll(link[1], "&amp;", "&"))
	s.Expect(asked).To(gomega.ContainSubstring("Send a request?"))
	s.Consistently(cluster.Current(obj), 200*time.Millisecond).Should(testenv.HaveAnnotation("kopf.zalando.org/request-retry", nil))

	form := url.Values{"resource": {"kopfexamples.kopf.dev"}, "namespace": {s.namespace}, "name": {"waiting"}, "verb": {"retry"}, "handler": {"create"}}
	s.Expect(s.post(form)).To(gomega.ContainSubstring("Requested. A running operator will retry the handler create now"))
	s.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation("kopf.zalando.org/request-retry", gomega.HaveSuffix(" create")))
	form.Set("handler", "update")
	s.Expect(s.post(form)).To(gomega.ContainSubstring("retry update is refused, and nothing was written"))
	form = url.Values{"resource": {"kopfexamples.kopf.dev"}, "namespace": {s.namespace}, "name": {"waiting"}, "verb": {"suspend"}, "for": {"1h"}}
	s.Expect(s.post(form)).To(gomega.ContainSubstring("is suspended until"))
	s.Eventually(s.rows("")).Should(gomega.Equal([]string{"waiting: suspended"}))
}

func (s *scene) post(form url.Values) string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.address+"/request", strings.NewReader(form.Encode()))
	s.Expect(err).NotTo(gomega.HaveOccurred())
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", s.address)
	answer, err := s.browser.Do(request)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	return s.read(answer)
}

func TestValuesOfSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	registry := newShop()
	s := open(t, registry, cluster.Namespace(t), false)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials", Namespace: s.namespace}, StringData: map[string]string{"password": "canary-1"}}
	s.Expect(cluster.Client().Create(t.Context(), secret)).To(gomega.Succeed())
	operator := operators.Start(t, cluster.Config(), s.namespace, registry)
	s.Eventually(s.rows("resource=secrets")).Should(gomega.Equal([]string{"credentials: handled"}))
	operator.Stop()
	s.patch(secret, `{"stringData":{"password":"canary-2"}}`)
	s.Eventually(s.rows("resource=secrets")).Should(gomega.Equal([]string{"credentials: due"}))
	shown := s.get("/object?resource=secrets&name=credentials&namespace=" + s.namespace)
	s.Expect(shown).To(gomega.ContainSubstring("data.password"))
	for _, value := range []string{"canary", "Y2FuYXJ5LT"} { // also as base64
		s.Expect(shown).NotTo(gomega.ContainSubstring(value))
	}
}

func TestTheOperatorIsShown(t *testing.T) {
	t.Parallel()
	s := open(t, newShop(), cluster.Namespace(t), false)
	s.Eventually(func() string { return s.get("/operator") }).Should(gomega.SatisfyAll(
		gomega.ContainSubstring("ClusterKopfPeering"), gomega.ContainSubstring("The lease does not exist"), gomega.ContainSubstring("<td>watched</td>")))
}

// A running operator says at the endpoint of its secure metrics what only it knows.
func TestTheRunningOperatorIsAsked(t *testing.T) {
	t.Parallel()
	registry, namespace, address := newShop(), cluster.Namespace(t), testenv.FreeAddress(t)
	ends := make(chan struct{})
	registry.OnCreate(examples, func(ctx context.Context, _ *kopf.Change) error {
		select {
		case <-ends:
		case <-ctx.Done():
		}
		return nil
	}, kopf.ID("long"), kopf.Labels(map[string]kopf.Matcher{"long": kopf.Present()}))
	operators.Start(t, cluster.Config(), namespace, registry, func(o *kopf.Options) {
		o.Settings.Name = "asked.example.com"
		o.Settings.Metrics = settings.Metrics{Address: address, Secure: true}
	})
	reader := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"}}
	meta := metav1.ObjectMeta{Name: namespace + "-reader"}
	token := &authenticationv1.TokenRequest{}
	s := gomega.NewWithT(t)
	for _, obj := range []client.Object{
		reader, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/activity"}, Verbs: []string{"get"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: reader.Name}},
		},
	} {
		s.Expect(cluster.Client().Create(t.Context(), obj)).To(gomega.Succeed())
	}
	s.Expect(cluster.Client().SubResource("token").Create(t.Context(), reader, token)).To(gomega.Succeed())
	page := openWith(t, registry, namespace, func(o *page.Options) {
		o.Running = inspect.Endpoint{URL: "https://" + address, Token: token.Status.Token}
	})
	obj := testenv.NewObject("KopfExample", namespace, "busy", nil)
	obj.SetLabels(map[string]string{"long": ""})
	s.Expect(cluster.Client().Create(t.Context(), obj)).To(gomega.Succeed())
	s.Eventually(func() string { return page.get("/operator") }, testenv.Patience).Should(gomega.SatisfyAll(
		gomega.ContainSubstring("of handlers, of which 0 failed for good"), gomega.ContainSubstring("kopfexamples.kopf.dev/busy in "+namespace+"</a>"),
		gomega.ContainSubstring("What the operator watches"), gomega.ContainSubstring(`<span class="state good">alive</span>`)))
	s.Expect(page.get("/object?resource=kopfexamples.kopf.dev&name=busy&namespace=" + namespace)).To(gomega.ContainSubstring("The handler long is running since"))
	close(ends)
	s.Eventually(page.rows("name=busy")).Should(gomega.Equal([]string{"busy: handled"}))
}

// A resource whose definition is created while the page is open appears.
func TestADefinitionIsCreatedWhileSomebodyLooks(t *testing.T) {
	t.Parallel()
	registry := kopf.NewRegistry()
	registry.OnCreate(kopf.Resource("later.example.com", "v1", "gadgets"), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("create"))
	s := open(t, registry, cluster.Namespace(t), false)
	s.Expect(s.get("/")).To(gomega.ContainSubstring("The cluster serves no resources that this program has handlers for."))
	changes := s.listen("/changes")
	definition := testenv.Definition("later.example.com", "gadgets", "Gadget", "v1")
	s.Expect(cluster.Client().Create(t.Context(), definition)).To(gomega.Succeed())
	t.Cleanup(func() { _ = cluster.Client().Delete(context.WithoutCancel(t.Context()), definition) })
	s.Eventually(changes, testenv.Patience).Should(gomega.Receive(gomega.Equal("event: change")))
	gadget := testenv.NewObject("Gadget", s.namespace, "one", nil)
	gadget.SetAPIVersion("later.example.com/v1")
	s.Eventually(func() error { return client.IgnoreAlreadyExists(cluster.Client().Create(t.Context(), gadget)) }, testenv.Patience).Should(gomega.Succeed())
	s.Eventually(s.rows(""), testenv.Patience).Should(gomega.Equal([]string{"one: due"}))
}

func TestTheCommandServesThePage(t *testing.T) {
	t.Parallel()
	s := gomega.NewWithT(t)
	load := func(known settings.Settings) (cli.Program, error) {
		handlers, err := newShop().Declarations().Handlers(nil)
		return cli.Program{Handlers: handlers, Settings: known}, err
	}
	kubeconfig := filepath.Join(t.TempDir(), "config")
	s.Expect(os.WriteFile(kubeconfig, cluster.KubeConfig(), 0o600)).To(gomega.Succeed())
	newCommand := func(arguments ...string) *cobra.Command {
		root := &cobra.Command{Use: "my-operator"}
		root.AddCommand(cli.Commands(load)...)
		root.SetArgs(append([]string{"page", "--kubeconfig", kubeconfig}, arguments...))
		return root
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	command, ended := newCommand(), make(chan error, 1)
	out, in := io.Pipe()
	command.SetOut(in)
	go func() { ended <- command.ExecuteContext(ctx) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	s.Expect(err).NotTo(gomega.HaveOccurred())
	go func() { _, _ = io.Copy(io.Discard, out) }()
	_, address, _ := strings.Cut(strings.TrimSpace(line), "The page is at ")
	s.Expect(address).To(gomega.MatchRegexp(`^http://127\.0\.0\.1:\d+/\?token=\w+$`))
	answer, err := http.Get(address)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(answer.Body.Close()).To(gomega.Succeed())
	s.Expect(answer.StatusCode).To(gomega.Equal(http.StatusOK))

	at, err := url.Parse(address)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	second := newCommand("--port", at.Port())
	second.SetErr(io.Discard)
	s.Expect(second.ExecuteContext(ctx)).To(gomega.MatchError(gomega.ContainSubstring("the page cannot be served")))
	interrupt()
	s.Eventually(ended).Should(gomega.Receive(gomega.BeNil()))
}
