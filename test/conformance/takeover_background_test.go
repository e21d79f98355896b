package conformance

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

const diffBaseAnnotation = "kopf.zalando.org/last-handled-configuration"

type declaredHandler struct {
	Kind   string            `json:"kind"`
	ID     string            `json:"id"`
	Field  string            `json:"field"`
	Labels map[string]string `json:"labels"`
}

type backgroundInput struct {
	Handlers []declaredHandler `json:"handlers"`
	Object   map[string]any    `json:"object"`  // as Kopf leaves it
	Changes  []map[string]any  `json:"changes"` // merge patches
}

type backgroundExpect struct {
	Essence map[string]any `json:"essence"`
	Updates [][]any        `json:"updates"` // the diff for each change; nil if there is no update
	Final   map[string]any `json:"final"`
}

// TestTakeoverWithBackground checks that the fields of handlers of events, daemons, and timers
// belong to the essence, as in Kopf. Our operator takes over an object from Kopf without a
// call, and what it stores for a new object is what Kopf stores, so that Kopf sees no change
// after the way back.
func TestTakeoverWithBackground(t *testing.T) {
	vectors := load[backgroundInput, backgroundExpect](t, "takeover_background")
	cluster := testenv.Start(t, testenv.Options{})
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "takeover_background", v.Name) {
				return
			}
			namespace := cluster.Namespace(t)
			taken := leftBehind(t, cluster, namespace, v.Input.Object)
			created := leftBehind(t, cluster, namespace, unhandled(v.Input.Object))
			calls := &changeLog{}
			expectNoUpdates(t, cluster, namespace, calls.handlers(t, v.Input.Handlers))
			operators.Start(t, cluster.Config(), namespace, calls.handlers(t, v.Input.Handlers))

			g := gomega.NewWithT(t)
			for obj, expected := range map[*unstructured.Unstructured][]string{taken: {"resume"}, created: {"create"}} {
				g.Eventually(calls.of(obj)).Should(gomega.Equal(expected))
				g.Eventually(storedEssence(cluster, obj)).Should(gomega.Equal(text(v.Expect.Essence)))
				for i, change := range v.Input.Changes {
					apply(t, cluster, obj, change)
					if v.Expect.Updates[i] != nil {
						expected = append(expected, "update "+text(v.Expect.Updates[i]))
						g.Eventually(calls.of(obj)).Should(gomega.Equal(expected))
					}
				}
				g.Eventually(storedEssence(cluster, obj)).Should(gomega.Equal(text(v.Expect.Final)))
			}
		})
	}
}

// expectNoUpdates expects a plan with the object that Kopf has not handled, and nothing else.
func expectNoUpdates(t *testing.T, cluster *testenv.Cluster, namespace string, registry *kopf.Registry) {
	t.Helper()
	g := gomega.NewWithT(t)
	handlers, err := registry.Declarations().Handlers(nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	c, err := inspect.Connect(t.Context(), cluster.Config(), inspect.Program{Handlers: handlers})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	plan, err := c.NewPlan(t.Context(), namespace)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(plan.Resources).To(gomega.HaveLen(1))
	r := plan.Resources[0]
	g.Expect([]int{r.Objects, r.Creations, r.Updates, r.Deletions, r.Continued, r.Undecidable, r.ErrorCount}).To(gomega.Equal([]int{2, 1, 0, 0, 0, 0, 0}), plan.Text(inspect.Style{}))
}

// unhandled returns the object as its user creates it.
func unhandled(raw map[string]any) map[string]any {
	obj := (&unstructured.Unstructured{Object: raw}).DeepCopy()
	obj.SetName(obj.GetName() + "-new")
	obj.SetFinalizers(nil)
	unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", diffBaseAnnotation)
	return obj.Object
}

// apply applies a merge patch to the object and to its status.
func apply(t *testing.T, cluster *testenv.Cluster, obj *unstructured.Unstructured, change map[string]any) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(text(change)))
	write := cluster.Client().Patch
	if change["status"] != nil {
		write = func(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
			return cluster.Client().Status().Patch(ctx, obj, patch)
		}
	}
	if err := write(context.Background(), obj.DeepCopy(), patch); err != nil {
		t.Fatal(err)
	}
}

// storedEssence returns the essence in the annotation of the object, and the annotations of
// progress that should not be there.
func storedEssence(cluster *testenv.Cluster, obj *unstructured.Unstructured) func() (string, error) {
	current := cluster.Current(obj)
	return func() (string, error) {
		read, err := current()
		if err != nil {
			return "", err
		}
		var essence map[string]any
		if err := decode([]byte(read.GetAnnotations()[diffBaseAnnotation]), &essence); err != nil {
			return "", err
		}
		stored := text(essence)
		for key := range read.GetAnnotations() {
			if strings.HasPrefix(key, "kopf.zalando.org/") && key != diffBaseAnnotation {
				stored += " and " + key
			}
		}
		return stored, nil
	}
}

// text returns a value as JSON with sorted keys.
func text(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// changeLog records the calls of the handlers of changes.
type changeLog struct {
	mu    sync.Mutex
	calls map[string][]string // by the name of the object
}

func (l *changeLog) of(obj *unstructured.Unstructured) func() []string {
	return func() []string {
		l.mu.Lock()
		defer l.mu.Unlock()
		return slices.Clone(l.calls[obj.GetName()])
	}
}

func (l *changeLog) note(name, call string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		l.calls = map[string][]string{}
	}
	l.calls[name] = append(l.calls[name], call)
	return nil
}

// handlers declares the handlers of a vector. The handler of resumptions is called last, so
// that it shows that no other handler was called for a takeover.
func (l *changeLog) handlers(t *testing.T, declared []declaredHandler) *kopf.Registry {
	registry, sel := kopf.NewRegistry(), kopf.Resource("kopf.dev/v1", "kopfexamples")
	for _, d := range declared {
		l.declare(t, registry, sel, d)
	}
	registry.OnResume(sel, func(_ context.Context, c *kopf.Change) error { return l.note(c.Name(), "resume") }, kopf.ID("resume_fn"))
	return registry
}

func (l *changeLog) declare(t *testing.T, registry *kopf.Registry, sel kopf.Selector, d declaredHandler) {
	id, field, labels := kopf.ID(d.ID), kopf.Field(d.Field), filtersOf(d.Labels)
	switch d.Kind {
	case "create":
		registry.OnCreate(sel, func(_ context.Context, c *kopf.Change) error { return l.note(c.Name(), "create") }, id)
	case "update":
		registry.OnUpdate(sel, func(_ context.Context, c *kopf.Change) error {
			return l.note(c.Name(), "update "+text(itemsOf(c.Diff())))
		}, id)
	case "field":
		registry.OnField(sel, d.Field, func(context.Context, *kopf.Change) error { return nil }, id)
	case "event":
		registry.OnEvent(sel, func(context.Context, *kopf.WatchEvent) error { return nil }, id, field, labels)
	case "daemon":
		registry.Daemon(sel, func(ctx context.Context, _ *kopf.Task) error { <-ctx.Done(); return nil }, id, field, labels,
			kopf.CancellationTimeout(time.Second))
	case "timer":
		registry.Timer(sel, func(context.Context, *kopf.Tick) error { return nil }, id, field, labels, kopf.Interval(time.Hour))
	case "index":
		kopf.NewIndex(registry, sel, func(_ context.Context, c *kopf.Indexed) (map[string]string, error) { return nil, nil }, id, field)
	default:
		t.Fatalf("a handler of the unknown kind %q", d.Kind)
	}
}

func filtersOf(labels map[string]string) kopf.Option {
	filters := map[string]kopf.Matcher{}
	for key, value := range labels {
		filters[key] = kopf.Equal(value)
	}
	return kopf.Labels(filters)
}

// itemsOf returns a diff as Kopf's handlers get it, with dotted paths.
func itemsOf(diff diff.Diff) []any {
	var items []any
	for _, item := range diff {
		items = append(items, []any{string(item.Op), item.Path.String(), item.Old, item.New})
	}
	return items
}
