package handling

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// sized is an example whose size must be a quantity. The schema of the resource allows any.
type sized struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Size resource.Quantity `json:"size"`
	} `json:"spec"`
}

func (s *sized) DeepCopyObject() runtime.Object {
	c := &sized{TypeMeta: s.TypeMeta, ObjectMeta: *s.ObjectMeta.DeepCopy()}
	c.Spec.Size = s.Spec.Size.DeepCopy()
	return c
}

// startTyped runs an operator that knows the type.
func (b *bench) startTyped() *operators.Operator {
	b.t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "KopfExample"}, &sized{})
	worked, name := make(chan struct{}), "works-"+rand.String(5)
	works := sync.OnceFunc(func() { close(worked) })
	b.OnEvent(kopf.Resource("configmaps"), func(context.Context, *kopf.WatchEvent) error { works(); return nil }, kopf.ID(name))
	operator := b.start(func(o *kopf.Options) { o.Scheme = scheme })
	// Until the operator works, objects count as older, and their misfits as one summary.
	signal := testenv.NewObject("ConfigMap", b.namespace, name, nil)
	signal.SetAPIVersion("v1")
	b.submit(signal)
	<-worked
	return operator
}

// sizes makes a handler record its calls with the sizes: "id 1Gi->2Gi".
func (b *bench) sizes(id string) func(context.Context, *sized, *kopf.Change) error {
	return func(_ context.Context, object *sized, c *kopf.Change) error {
		var old sized
		known, err := c.DecodeOld(&old)
		switch {
		case err != nil:
			b.calls.Note("%s unknown->%s", id, &object.Spec.Size)
		case !known:
			b.calls.Note("%s %s", id, &object.Spec.Size)
		default:
			b.calls.Note("%s %s->%s", id, &old.Spec.Size, &object.Spec.Size)
		}
		return nil
	}
}

func size(text string) map[string]any { return map[string]any{"size": text} }

func (b *bench) resize(obj *unstructured.Unstructured, text string) {
	b.t.Helper()
	b.patch(obj, fmt.Sprintf(`{"spec":{"size":%q}}`, text))
}

func (b *bench) misfitEvents(obj *unstructured.Unstructured) func() ([]string, error) {
	return func() ([]string, error) {
		events, err := cluster.Events(obj)()
		var found []string
		for _, event := range events {
			if strings.HasPrefix(event, "Warning ObjectMisfit: ") {
				found = append(found, event)
			}
		}
		return found, err
	}
}

// ownAnnotations returns the names of the operator's annotations.
func ownAnnotations(obj *unstructured.Unstructured) (found []string) {
	for key := range obj.GetAnnotations() {
		if strings.HasPrefix(key, prefix) {
			found = append(found, strings.TrimPrefix(key, prefix))
		}
	}
	return found
}

func TestMisfitIsNotCalledAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	examples := kopf.For[*sized](b.Registry)
	examples.OnCreate(b.sizes("create"), kopf.ID("create"), kopf.Retries(1))
	examples.OnDelete(b.sizes("delete"), kopf.ID("delete"))
	b.startTyped()
	obj := b.create("one", size("abc"))
	b.Eventually(b.misfitEvents(obj)).Should(gomega.HaveLen(1))
	b.expectRest()
	b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), b.requests.String)
	b.Expect(b.logs.With("Handler create is not called: the object does not fit the Go type *handling.sized in spec.size", "kubectl edit")).To(gomega.HaveLen(1))

	b.resize(obj, "def") // still does not fit: nothing new
	b.expectRest()
	b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), b.requests.String)
	b.Expect(b.logs.With("Handler create is not called")).To(gomega.HaveLen(1))

	b.resize(obj, "1Gi")
	b.expectHandled(obj)
	b.Expect(b.current(obj)).To(testenv.HaveFinalizer(finalizer))
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create 1Gi"}))
}

// The former state does not fit; the correction must be handled nevertheless.
func TestCorrectionReachesUpdateHandlers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	kopf.For[*sized](b.Registry).OnUpdate(b.sizes("update"), kopf.ID("update"))
	b.startTyped()
	obj := b.create("one", size("abc"))
	b.expectHandled(obj) // no handler is for creations
	b.resize(obj, "1Gi")
	b.expectHandled(obj)
	b.resize(obj, "2Gi")
	b.expectHandled(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"update unknown->1Gi", "update 1Gi->2Gi"}))
}

// A handler that cannot work without the former state waits without an attempt.
func TestHandlerCanWaitForAFormerStateThatFits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	kopf.For[*sized](b.Registry).OnUpdate(func(_ context.Context, _ *sized, c *kopf.Change) error {
		b.calls.Note("update %d", c.Retry())
		_, err := c.DecodeOld(&sized{})
		return err
	}, kopf.ID("update"), kopf.Retries(1))
	b.startTyped()
	obj := b.create("one", size("abc"))
	b.expectHandled(obj)
	b.expectRest()
	b.requests.Reset()
	b.resize(obj, "1Gi")
	b.Eventually(b.misfitEvents(obj)).Should(gomega.ContainElement(gomega.ContainSubstring("the former state of the object does not fit")))
	b.expectRest()
	b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), b.requests.String)
	b.resize(obj, "2Gi")
	b.Eventually(b.calls.All).Should(gomega.Equal([]string{"update 0", "update 0"}))
}

func TestOtherHandlersEndWithoutTheMisfit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("untyped", succeed), kopf.ID("untyped"))
	kopf.For[*sized](b.Registry).OnCreate(b.sizes("typed"), kopf.ID("typed"))
	operator := b.startTyped()
	obj := b.create("one", size("abc"))
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"untyped", gomega.ContainSubstring(`"success":true`)))
	b.Eventually(b.misfitEvents(obj)).Should(gomega.HaveLen(1))
	b.expectRest()
	b.Expect(ownAnnotations(b.current(obj))).To(gomega.ConsistOf("untyped", "last-handled-configuration-started"))

	operator.Stop()
	b.requests.Reset()
	b.startTyped()
	b.Eventually(b.logged("Objects do not fit a Go type.", "spec.size", "typed")).Should(gomega.HaveLen(1))
	b.expectRest()
	b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), b.requests.String)
	b.Expect(b.misfitEvents(obj)()).To(gomega.HaveLen(1))

	b.resize(obj, "1Gi")
	b.expectHandled(obj)
	b.Expect(b.calls.Of("untyped")).To(gomega.Equal(attempts("untyped", 1)))
	b.Expect(b.calls.Of("typed")).To(gomega.Equal([]string{"typed 1Gi"}))
}

// An object that never fitted is held for its typed deletion handler as soon as another
// handler works on it: there is something to clean up.
func TestDeletionOfAnObjectThatNeverFittedButWasHandled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Registry.OnCreate(kopf.Resource("kopfexamples"), func(context.Context, *kopf.Change) error {
		b.calls.Note("create")
		return nil
	}, kopf.ID("create"))
	examples := kopf.For[*sized](b.Registry)
	examples.OnCreate(b.sizes("typed"), kopf.ID("typed"))
	examples.OnDelete(b.sizes("delete"), kopf.ID("delete"))
	b.startTyped()
	obj := b.create("one", size("abc"))
	b.Eventually(b.misfitEvents(obj)).ShouldNot(gomega.BeEmpty())
	b.expectRest()
	b.Expect(b.current(obj)).To(testenv.HaveFinalizer(finalizer))

	b.remove(obj)
	b.Eventually(b.misfitEvents(obj)).Should(gomega.ContainElement(gomega.ContainSubstring("The deletion is held for handler delete")))
	b.resize(obj, "2Gi")
	b.expectGone(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create", "delete 2Gi"}))
}

func TestDeletionOfAnUntouchedMisfitIsNotHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	examples := kopf.For[*sized](b.Registry)
	examples.OnCreate(b.sizes("create"), kopf.ID("create"))
	examples.OnDelete(b.sizes("delete"), kopf.ID("delete"))
	b.startTyped()
	obj := b.create("one", size("abc"))
	b.Eventually(b.misfitEvents(obj)).Should(gomega.HaveLen(1))
	b.remove(obj)
	b.expectGone(obj)
	b.Expect(b.calls.All()).To(gomega.BeEmpty())
	b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), b.requests.String)
}

func TestDeletionOfAMisfit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options []kopf.ChangeOption
		handled bool // the object fitted once
		held    bool
		calls   []string
	}{
		"only handled":   {nil, false, true, []string{"delete 2Gi"}},
		"held":           {nil, true, true, []string{"delete 2Gi"}},
		"optional":       {[]kopf.ChangeOption{kopf.Optional()}, true, false, nil},
		"released":       {[]kopf.ChangeOption{kopf.ReleaseMisfits()}, true, false, nil},
		"called untyped": {[]kopf.ChangeOption{kopf.CallUntyped()}, true, false, []string{"delete untyped"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			kopf.For[*sized](b.Registry).OnDelete(func(_ context.Context, object *sized, c *kopf.Change) error {
				if object == nil {
					b.calls.Note("delete untyped")
					return nil
				}
				b.calls.Note("delete %s", &object.Spec.Size)
				return nil
			}, append(test.options, kopf.ID("delete"))...)
			b.startTyped()
			obj := b.create("one", size("abc"))
			b.expectHandled(obj)
			if test.handled {
				b.resize(obj, "1Gi")
				b.expectHandled(obj)
				b.resize(obj, "abc")
				b.expectHandled(obj)
			}
			b.remove(obj)
			if test.held {
				b.Eventually(b.misfitEvents(obj)).Should(gomega.ContainElement(gomega.ContainSubstring("The deletion is held for handler delete")))
				b.expectRest()
				b.Expect(b.current(obj)).To(testenv.HaveFinalizer(finalizer))
				b.resize(obj, "2Gi")
			}
			b.expectGone(obj)
			b.Expect(b.calls.All()).To(gomega.HaveExactElements(test.calls))
		})
	}
}

func TestBackgroundHandlersStopForMisfits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	kopf.For[*sized](b.Registry).Daemon(func(_ context.Context, sized *sized, task *kopf.Task) error {
		b.calls.Note("started %s", &sized.Spec.Size)
		<-task.Stopped()
		b.calls.Note("stopped %t", task.StopReason().Has(stop.Misfit))
		return nil
	}, kopf.ID("daemon"))
	b.startTyped()
	obj := b.create("one", size("abc"))
	b.Eventually(b.misfitEvents(obj)).Should(gomega.HaveLen(1))
	b.Expect(b.current(obj).GetFinalizers()).To(gomega.BeEmpty())
	b.resize(obj, "1Gi")
	b.Eventually(b.calls.All).Should(gomega.Equal([]string{"started 1Gi"}))
	b.resize(obj, "abc")
	b.Eventually(b.calls.All).Should(gomega.Equal([]string{"started 1Gi", "stopped true"}))
	b.resize(obj, "2Gi")
	b.Eventually(b.calls.All).Should(gomega.Equal([]string{"started 1Gi", "stopped true", "started 2Gi"}))
	b.remove(obj)
	b.expectGone(obj)
}

func TestEventHandlersAndIndicesSkipMisfits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	examples := kopf.For[*sized](b.Registry)
	index := kopf.NewIndexOf(examples, func(_ context.Context, sized *sized, i *kopf.Indexed) (map[string]string, error) {
		return map[string]string{i.Name(): sized.Spec.Size.String()}, nil
	}, kopf.ID("index"))
	examples.OnEvent(func(_ context.Context, sized *sized, e *kopf.WatchEvent) error {
		b.calls.Note("event %s", &sized.Spec.Size)
		return nil
	}, kopf.ID("event"))
	b.startTyped()
	obj := b.create("one", size("1Gi"))
	b.Eventually(b.calls.All).Should(gomega.Equal([]string{"event 1Gi"}))
	b.Expect(index.Get("one")).To(gomega.HaveLen(1))
	b.resize(obj, "abc")
	b.Eventually(func() []string { return index.Get("one") }).Should(gomega.BeEmpty())
	b.Eventually(b.logged("Objects do not fit a Go type.", "event", "index")).Should(gomega.HaveLen(1))
	b.resize(obj, "2Gi")
	b.Eventually(b.calls.All).Should(gomega.Equal([]string{"event 1Gi", "event 2Gi"}))
	b.Expect(index.Get("one")).To(gomega.HaveLen(1))
	b.Expect(client.IgnoreNotFound(cluster.Client().Delete(b.t.Context(), obj))).To(gomega.Succeed())
}
