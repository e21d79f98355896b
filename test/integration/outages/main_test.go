// Package outages tests an engine with an API server that fails in all possible ways.
package outages

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) { testenv.Main(m, &cluster, testenv.Options{}) }

const handled = "kopf.zalando.org/last-handled-configuration"

// bench is an engine behind a faulty connection, with handlers for everything that can happen
// to an object.
type bench struct {
	*gomega.WithT
	t         *testing.T
	namespace string
	config    *rest.Config
	faults    *testenv.Faults
	requests  *testenv.CountingTransport
	engine    *reconcile.Engine

	mu    sync.Mutex
	calls map[string]int // by handler and object
}

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	b := &bench{WithT: gomega.NewWithT(t), t: t, namespace: cluster.Namespace(t), config: cluster.Config(), calls: map[string]int{}}
	b.faults = testenv.Strike(b.config)
	b.requests = testenv.Count(b.config)
	return b
}

// counted is a handler that succeeds with a result.
func (b *bench) counted(id string) handler.Function {
	return handlertest.Function(func(_ context.Context, c *handler.Call) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls[id+" "+c.Name()]++
		c.SetResult(int64(b.calls[id+" "+c.Name()]))
		c.Context.Patch.Apply(func(obj *unstructured.Unstructured) error { // must not be repeated
			seen, _, _ := unstructured.NestedInt64(obj.Object, "spec", "seen")
			return unstructured.SetNestedField(obj.Object, seen+1, "spec", "seen")
		})
		return nil
	})
}

func (b *bench) called(id, name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[id+" "+name]
}

func (b *bench) handlers() registry.Handlers {
	b.t.Helper()
	kex := selector.New("kopf.dev", "v1", "kopfexamples")
	r := &registry.Registry{}
	r.Add(handler.Create(kex, b.counted("create"), handler.ID("create")))
	r.Add(handler.ForField(kex, []string{"spec", "wish"}, b.counted("update"), handler.ID("update")))
	r.Add(handler.Delete(kex, b.counted("delete"), handler.ID("delete")))
	handlers, err := r.Handlers(scheme.Scheme)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	return handlers
}

// start runs an engine until the test ends. It does not wait until the engine is ready.
func (b *bench) start() {
	b.t.Helper()
	connection, err := rest.HTTPClientFor(b.config)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	resources, err := discovery.NewSource(b.config, connection)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	s := settings.Settings{}
	s.Scope.Namespaces = []string{b.namespace}
	s.Networking.ErrorBackoffs = []time.Duration{50 * time.Millisecond}
	s.Queueing.ErrorDelays = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}
	s.Watching.ReconnectLimit = 400 * time.Millisecond
	s.Posting.Disabled = true
	b.engine = reconcile.New(reconcile.Config{
		Handlers: b.handlers(), Settings: s, Logger: testenv.Logger(), REST: b.config, HTTP: connection, Resources: resources,
		Context: func(ctx context.Context, _ reconcile.CallContext) context.Context { return ctx },
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- b.engine.Watch(ctx) }()
	go func() { ended <- b.engine.Work(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		for range 2 {
			select {
			case err := <-ended:
				b.Expect(err).NotTo(gomega.HaveOccurred())
			case <-time.After(testenv.Patience):
				b.t.Error("the engine did not stop")
			}
		}
	})
}

func (b *bench) ready() {
	b.t.Helper()
	b.Eventually(b.engine.Ready()).Should(gomega.BeClosed())
}

func (b *bench) create(name string) *unstructured.Unstructured {
	b.t.Helper()
	object := testenv.NewObject("KopfExample", b.namespace, name, map[string]any{})
	b.Expect(cluster.Client().Create(b.t.Context(), object)).To(gomega.Succeed())
	return object
}

// wish makes the change that the update handler handles.
func (b *bench) wish(object *unstructured.Unstructured, wish string) {
	b.t.Helper()
	merge := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"wish":%q}}`, wish))
	b.Expect(cluster.Client().Patch(b.t.Context(), object.DeepCopy(), merge)).To(gomega.Succeed())
}

// problems returns the watches that do not continue.
func (b *bench) problems() []string {
	var all []string
	for _, w := range b.engine.WatchStatuses() {
		if w.Err != nil {
			all = append(all, fmt.Sprintf("%s in %s: %s", w.Resource, w.Namespace, w.Err))
		}
	}
	return all
}
