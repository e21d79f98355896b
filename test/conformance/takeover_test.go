package conformance

import (
	"context"
	"errors"
	"maps"
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
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

type takeoverStart struct {
	Handler string `json:"handler"`
	Retry   int    `json:"retry"`
}

type takeoverInput struct {
	Cycle  string         `json:"cycle"`
	Object map[string]any `json:"object"`
}

type takeoverExpect struct {
	StartedAfter []takeoverStart `json:"startedAfter"`
	Final        map[string]any  `json:"final"` // null if the object is gone
}

// TestTakeover lets our operator finish the work of a killed Kopf operator. All objects exist
// before the operator starts, as in a real takeover.
func TestTakeover(t *testing.T) {
	vectors := load[takeoverInput, takeoverExpect](t, "takeover")
	cluster := testenv.Start(t, testenv.Options{})
	namespace := cluster.Namespace(t)
	objects := map[string]*unstructured.Unstructured{}
	for _, v := range vectors {
		objects[v.Name] = leftBehind(t, cluster, namespace, v.Input.Object)
	}
	log := &startLog{}
	expectPlan(t, cluster, namespace, log.handlers(), len(vectors), len(vectors)-finishedVectors)
	operators.Start(t, cluster.Config(), namespace, log.handlers())
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "takeover", v.Name) {
				return
			}
			finished(t, cluster, objects[v.Name], v.Expect.Final)
			got, want := byHandler(log.of(objects[v.Name].GetName())), byHandler(v.Expect.StartedAfter)
			if !maps.EqualFunc(got, want, slices.Equal) {
				t.Errorf("the starts of the handlers and their retry numbers: got %v, want %v", got, want)
			}
		})
	}
	if !t.Failed() {
		left := slices.DeleteFunc(vectors, func(v vector[takeoverInput, takeoverExpect]) bool { return v.Expect.Final == nil })
		expectPlan(t, cluster, namespace, log.handlers(), len(left), 0)
	}
}

// finishedVectors is the number of objects that Kopf has handled before it was killed.
const finishedVectors = 3

// expectPlan expects that no object would be handled for another change, and that the handling of
// some is continued.
func expectPlan(t *testing.T, cluster *testenv.Cluster, namespace string, registry *kopf.Registry, objects, continued int) {
	g := gomega.NewWithT(t)
	handlers, err := registry.Declarations().Handlers(nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	c, err := inspect.Connect(t.Context(), cluster.Config(), inspect.Program{Handlers: handlers})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	plan, err := c.NewPlan(t.Context(), namespace)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(plan.Changes()).To(gomega.BeZero(), plan.Text(inspect.Style{}))
	g.Expect(plan.Resources).To(gomega.HaveLen(1))
	g.Expect(plan.Resources[0].Objects).To(gomega.Equal(objects))
	g.Expect(plan.Resources[0].Continued).To(gomega.Equal(continued))
	g.Expect(plan.Resources[0].ErrorCount + plan.Resources[0].Undecidable + len(plan.Resources[0].Undeclared)).To(gomega.BeZero())
}

// leftBehind creates an object in the state when Kopf was killed.
func leftBehind(t *testing.T, cluster *testenv.Cluster, namespace string, raw map[string]any) *unstructured.Unstructured {
	g, ctx := gomega.NewWithT(t), context.Background()
	obj := (&unstructured.Unstructured{Object: raw}).DeepCopy()
	deleting, status := obj.GetDeletionTimestamp() != nil, obj.Object["status"]
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	obj.SetNamespace(namespace)
	g.Expect(cluster.Client().Create(ctx, obj)).To(gomega.Succeed())
	if status != nil {
		obj.Object["status"] = status
		g.Expect(cluster.Client().Status().Update(ctx, obj)).To(gomega.Succeed())
	}
	if deleting {
		g.Expect(cluster.Client().Delete(ctx, obj)).To(gomega.Succeed())
	}
	return obj
}

// finished waits until the object is as Kopf would have left it.
func finished(t *testing.T, cluster *testenv.Cluster, obj *unstructured.Unstructured, final map[string]any) {
	g := gomega.NewWithT(t)
	if final == nil {
		g.Eventually(cluster.Exists(obj)).Should(gomega.BeFalse())
		return
	}
	g.Eventually(func() string {
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(obj.GroupVersionKind())
		if err := cluster.Client().Get(context.Background(), client.ObjectKeyFromObject(obj), current); err != nil {
			return err.Error()
		}
		return differences(essentials(final), essentials(current.Object))
	}).Should(gomega.BeEmpty())
}

// essentials returns the part of an object that does not depend on its location, with decoded
// JSON in the annotations.
func essentials(raw map[string]any) map[string]any {
	obj := (&unstructured.Unstructured{Object: raw}).DeepCopy()
	annotations := map[string]any{}
	for key, text := range obj.GetAnnotations() {
		var value any
		if decode([]byte(text), &value) != nil {
			value = text
		}
		annotations[key] = value
	}
	return map[string]any{
		"annotations": annotations, "labels": anyMap(obj.GetLabels()),
		"finalizers": strings.Join(obj.GetFinalizers(), ","),
		"spec":       obj.Object["spec"], "status": obj.Object["status"],
	}
}

func anyMap(texts map[string]string) map[string]any {
	mapping := map[string]any{}
	for key, text := range texts {
		mapping[key] = text
	}
	return mapping
}

func differences(want, got map[string]any) string {
	var parts []string
	for key := range want {
		if !object.Equal(want[key], got[key]) {
			parts = append(parts, key+": got "+object.NewValue(got[key]).String()+", want "+object.NewValue(want[key]).String())
		}
	}
	return strings.Join(parts, "\n")
}

// startLog records every start of a handler.
type startLog struct {
	mu     sync.Mutex
	starts map[string][]takeoverStart // by the name of the object
}

func (l *startLog) of(name string) []takeoverStart {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.starts[name])
}

// wrap records the starts of a handler under its id.
func (l *startLog) wrap(id string, fn func(context.Context, *kopf.Change) error) func(context.Context, *kopf.Change) error {
	return func(ctx context.Context, c *kopf.Change) error {
		l.mu.Lock()
		if l.starts == nil {
			l.starts = map[string][]takeoverStart{}
		}
		l.starts[c.Name()] = append(l.starts[c.Name()], takeoverStart{id, c.Retry()})
		l.mu.Unlock()
		return fn(ctx, c)
	}
}

// byHandler returns the retry numbers of each handler in order.
func byHandler(starts []takeoverStart) map[string][]int {
	retries := map[string][]int{}
	for _, start := range starts {
		retries[start.Handler] = append(retries[start.Handler], start.Retry)
	}
	return retries
}

// handlers returns the handlers of the killed Kopf operator.
func (l *startLog) handlers() *kopf.Registry {
	registry, sel := kopf.NewRegistry(), kopf.Resource("kopf.dev/v1", "kopfexamples")
	create := func(id string, fn func(context.Context, *kopf.Change) error, options ...kopf.ChangeOption) {
		registry.OnCreate(sel, l.wrap(id, fn), append(options, kopf.ID(id))...)
	}
	create("create_plain", succeed)
	create("create_retried", twice(func(c *kopf.Change) { c.SetResult(map[string]any{"attempts": c.Retry() + 1}) }))
	create("create_failing", func(context.Context, *kopf.Change) error { return errors.New("always") },
		kopf.Retries(2), kopf.Backoff(time.Second))
	registry.OnCreate(sel, l.parent, kopf.ID("create_parent"))
	registry.OnUpdate(sel, l.wrap("update_retried/spec.field", twice(func(c *kopf.Change) {
		c.SetResult(map[string]any{"old": c.Old().Any(), "new": c.New().Any()})
	})), kopf.ID("update_retried"), kopf.Field("spec.field"))
	registry.OnUpdate(sel, l.wrap("update_plain", succeed), kopf.ID("update_plain"))
	registry.OnDelete(sel, l.wrap("delete_retried", twice(func(*kopf.Change) {})), kopf.ID("delete_retried"))
	registry.OnDelete(sel, l.wrap("delete_plain", succeed), kopf.ID("delete_plain"))
	return registry
}

// parent has a sub-handler for each item.
func (l *startLog) parent(_ context.Context, c *kopf.Change) error {
	items, _ := c.Spec().Strings("items")
	for _, item := range items {
		c.Subhandler(item, l.wrap("create_parent/"+item, func(_ context.Context, c *kopf.Change) error {
			if item == "item2" && c.Retry() < 1 {
				return kopf.Temporary(errors.New("later"), time.Second)
			}
			c.SetResult(map[string]any{"item": item})
			return nil
		}))
	}
	return nil
}

func succeed(context.Context, *kopf.Change) error { return nil }

// twice fails temporarily two times before it succeeds.
func twice(finish func(*kopf.Change)) func(context.Context, *kopf.Change) error {
	return func(_ context.Context, c *kopf.Change) error {
		if c.Retry() < 2 {
			return kopf.Temporary(errors.New("not yet"), time.Second)
		}
		finish(c)
		return nil
	}
}
