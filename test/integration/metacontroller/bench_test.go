package metacontroller

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/serve"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

type m = map[string]any

// object is an object of a request or an answer.
type object = unstructured.Unstructured

// bench is an operator with a file of controllers, and the service with their hooks.
type bench struct {
	*gomega.WithT
	t         *testing.T
	namespace string
	config    *rest.Config
	requests  *testenv.CountingTransport
	logs      *operators.Journal
	url       string

	mu    sync.Mutex
	hooks map[string]func(*request) (answer m, status int)
	// calls are the requests of each hook.
	calls map[string][]*request
}

// request is a request of a hook.
type request struct {
	m
	parent *object
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{
		WithT: gomega.NewWithT(t), t: t, namespace: cluster.Namespace(t), config: cluster.Config(), logs: &operators.Journal{},
		hooks: map[string]func(*request) (m, int){}, calls: map[string][]*request{},
	}
	b.requests = testenv.Count(b.config)
	server := httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// on sets what a hook answers.
func (b *bench) on(hook string, answer func(*request) m) {
	b.onStatus(hook, func(r *request) (m, int) { return answer(r), http.StatusOK })
}

// onStatus is on with an HTTP status.
func (b *bench) onStatus(hook string, answer func(*request) (m, int)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hooks[hook] = answer
}

func (b *bench) serve(w http.ResponseWriter, of *http.Request) {
	data, err := io.ReadAll(of.Body)
	r := &request{}
	if err == nil {
		err = utiljson.Unmarshal(data, &r.m)
	}
	if err != nil {
		b.t.Error(err)
	}
	for _, word := range []string{"parent", "object"} {
		if fields, ok := r.m[word].(m); ok {
			r.parent = &object{Object: fields}
		}
	}
	name := strings.TrimPrefix(of.URL.Path, "/")
	b.mu.Lock()
	b.calls[name] = append(b.calls[name], r)
	hook := b.hooks[name]
	b.mu.Unlock()
	answer, status := hook(r)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// called returns the requests of a hook so far.
func (b *bench) called(hook string) []*request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls[hook])
}

// names returns the names of the objects of a group of a request, sorted.
func (r *request) names(of, group string) []string {
	groups, _ := r.m[of].(m)
	objects, _ := groups[group].(m)
	names := []string{}
	for name := range objects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// get returns a field of an object of a request.
func (r *request) get(of, group, name string, field ...string) string {
	groups, _ := r.m[of].(m)
	objects, _ := groups[group].(m)
	fields, _ := objects[name].(m)
	text, _, _ := unstructured.NestedString(fields, field...)
	return text
}

// field returns spec.field of the parent.
func (r *request) field() string {
	text, _, _ := unstructured.NestedString(r.parent.Object, "spec", "field")
	return text
}

// start runs an operator with the controllers, in which URL is that of the hooks.
func (b *bench) start(controllers string, adjust ...func(*kopf.Options)) *operators.Operator {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "controllers.yaml")
	b.Expect(os.WriteFile(path, []byte(strings.ReplaceAll(controllers, "URL", b.url)), 0o600)).To(gomega.Succeed())
	program, err := serve.Load(b.t.Context(), serve.Options{Files: []string{path}, Logger: logr.Discard()})
	b.Expect(err).NotTo(gomega.HaveOccurred())
	b.t.Cleanup(func() { b.Expect(program.Close()).To(gomega.Succeed()) })
	registry := kopf.NewRegistry()
	program.Declare(registry)
	logged := func(o *kopf.Options) { o.Logger = b.logs.Logger() }
	return operators.Start(b.t, b.config, b.namespace, registry, append([]func(*kopf.Options){logged}, adjust...)...)
}

// create creates an object, in YAML. It is in the namespace of the test, unless it says another one or none.
func (b *bench) create(text string, values ...any) *object {
	b.t.Helper()
	obj := &object{}
	b.Expect(yaml.Unmarshal([]byte(fmt.Sprintf(text, values...)), obj)).To(gomega.Succeed())
	if obj.GetKind() != "KopfCluster" {
		obj.SetNamespace(b.namespace)
	}
	b.Expect(cluster.Client().Create(b.t.Context(), obj)).To(gomega.Succeed())
	return obj
}

// named returns an object to look for.
func (b *bench) named(apiVersion, kind, name string) *object {
	obj := &object{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace(b.namespace)
	obj.SetName(name)
	return obj
}

func (b *bench) patch(obj *object, merge string) {
	b.t.Helper()
	b.Expect(cluster.Client().Patch(b.t.Context(), obj.DeepCopy(), mergePatch(merge))).To(gomega.Succeed())
}

func mergePatch(text string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(text))
}

func (b *bench) remove(obj *object) {
	b.t.Helper()
	b.Expect(cluster.Client().Delete(b.t.Context(), obj.DeepCopy())).To(gomega.Succeed())
}

func (b *bench) current(obj *object) *object {
	b.t.Helper()
	current, err := cluster.Current(obj)()
	b.Expect(err).NotTo(gomega.HaveOccurred())
	return current
}

// eventually waits until an object has values at paths.
func (b *bench) eventually(obj *object, paths m) {
	b.t.Helper()
	for path, value := range paths {
		b.Eventually(cluster.Current(obj)).Should(testenv.HavePath(path, value), b.logs.String)
	}
}

func (b *bench) expectGone(obj *object) {
	b.t.Helper()
	b.Eventually(cluster.Exists(obj)).Should(gomega.BeFalse(), b.logs.String)
}

// expectRest waits until the operator has nothing left to do.
func (b *bench) expectRest() {
	b.t.Helper()
	b.Eventually(cluster.AtRest(b.requests)).Should(gomega.BeTrue(), b.requests.String)
}

// child returns a child for an answer, with one value.
func child(kind, name, value string) m {
	c := m{"apiVersion": "v1", "kind": kind, "metadata": m{"name": name}}
	switch kind {
	case "ConfigMap":
		c["data"] = m{"value": value}
	case "Secret":
		c["stringData"] = m{"value": value}
	default:
		c["metadata"] = m{"name": name, "annotations": m{"value": value}}
	}
	return c
}
