package handling

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/lifecycles"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// The storage of the state does not affect the calls of handlers, even across restarts.
func TestStoragesDoNotAffectHandlers(t *testing.T) {
	t.Parallel()
	inStatus := func(o *kopf.Options) {
		o.Settings.Persistence.Progress, o.Settings.Persistence.DiffBase = storage.StatusProgress{}, storage.StatusDiffBase{}
	}
	tests := map[string]struct {
		selector    kopf.Selector
		kind        string
		adjust      func(o *kopf.Options)
		annotations string // the prefix of the remaining annotations
	}{
		"the default":                 {examples, "KopfExample", func(*kopf.Options) {}, handled},
		"the status as a subresource": {examples, "KopfExample", inStatus, ""},
		"the status as a field":       {noStatuses, "KopfNoStatus", inStatus, ""},
		"annotations with a custom prefix": {examples, "KopfExample", func(o *kopf.Options) {
			o.Settings.Persistence.Progress = storage.AnnotationsProgress{Prefix: "my-op.example.com"}
			o.Settings.Persistence.DiffBase = storage.AnnotationsDiffBase{Prefix: "my-op.example.com", Key: "seen"}
		}, "my-op.example.com/"},
		"one in the status, the other in annotations": {examples, "KopfExample", func(o *kopf.Options) {
			o.Settings.Persistence.Progress = storage.StatusProgress{Field: object.Path{"status", "mine", "progress"}}
		}, handled},
		"both, for a transition": {examples, "KopfExample", func(o *kopf.Options) {
			o.Settings.Persistence.Progress = storage.MultiProgress{storage.AnnotationsProgress{}, storage.StatusProgress{}}
			o.Settings.Persistence.DiffBase = storage.MultiDiffBase{storage.AnnotationsDiffBase{}, storage.StatusDiffBase{}}
		}, handled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			retried := failing(2, 300*time.Millisecond)
			b.OnCreate(test.selector, b.noted("done", returning("kept")), kopf.ID("done"))
			b.OnCreate(test.selector, b.noted("create", retried), kopf.ID("create"))
			b.OnUpdate(test.selector, b.seeing("sees", b.noted("update", retried)), kopf.ID("update"))
			operator := b.start(test.adjust)
			obj := b.submit(testenv.NewObject(test.kind, b.namespace, "one", map[string]any{"field": "1"}))
			b.Eventually(func() []string { return b.calls.Of("create") }).ShouldNot(gomega.BeEmpty())
			operator.Stop()
			operator = b.start(test.adjust)
			b.Eventually(func() []string { return b.calls.Of("create") }).Should(gomega.Equal(attempts("create", 3)))
			b.expectRest()
			b.Expect(b.calls.Of("done")).To(gomega.Equal(attempts("done", 1)))

			b.setField(obj, "2")
			b.Eventually(func() []string { return b.calls.Of("update") }).Should(gomega.Equal(attempts("update", 3)))
			b.expectRest()
			b.Expect(b.calls.Of("sees")).To(gomega.Equal([]string{"sees 1->2", "sees 1->2", "sees 1->2"}))
			operator.Stop()
			b.requests.Reset()
			b.start(test.adjust)
			b.expectRest()
			b.Expect(b.requests.Snapshot().Writes(b.resource(test.kind))).To(gomega.BeZero(), "a restart: %s", b.requests)
			b.Expect(b.calls.All()).To(gomega.HaveLen(1 + 3 + 6))

			left := b.current(obj)
			b.Expect(left).To(testenv.HavePath("status.done", "kept"))
			for key := range left.GetAnnotations() {
				b.Expect(test.annotations != "" && strings.HasPrefix(key, test.annotations)).To(gomega.BeTrue(), key)
			}
		})
	}
}

// hearing is a storage that hears the end of objects, and fails the first time for each of them.
type hearing struct {
	storage.AnnotationsDiffBase
	calls *operators.Calls
}

func (h hearing) Erase(_ context.Context, body *object.Body) error {
	uid := string(body.UID())
	h.calls.Note("%s is gone", uid)
	if len(h.calls.Of(uid)) == 1 {
		return errNotYet
	}
	return nil
}

func TestStoragesHearTheEndOfObjects(t *testing.T) {
	t.Parallel()
	const other = "example.com/other"
	b := newBench(t)
	b.OnCreate(examples, succeed, kopf.ID("create"))
	b.OnDelete(examples, b.noted("delete", failing(1, 0)), kopf.ID("delete"), kopf.Labels(map[string]kopf.Matcher{"release": kopf.Present()}))
	heard := &operators.Calls{}
	adjust := func(o *kopf.Options) {
		o.Settings.Persistence.DiffBase = hearing{calls: heard}
		o.Settings.Queueing.ErrorDelays = []time.Duration{10 * time.Millisecond}
	}
	operator := b.start(adjust)
	expectHeard := func(obj *unstructured.Unstructured) {
		t.Helper()
		uid := string(obj.GetUID())
		b.Eventually(func() []string { return heard.Of(uid) }).Should(gomega.HaveLen(2), b.logs.String)
	}

	free := b.create("free", nil)
	released := testenv.NewObject("KopfExample", b.namespace, "released", nil)
	released.SetLabels(map[string]string{"release": "yes"})
	b.submit(released)
	held := testenv.NewObject("KopfExample", b.namespace, "held", nil)
	held.SetFinalizers([]string{other})
	b.submit(held)
	for _, obj := range []*unstructured.Unstructured{free, released, held} {
		b.expectHandled(obj)
	}
	for _, obj := range []*unstructured.Unstructured{free, released, held} {
		b.remove(obj)
	}
	expectHeard(free)
	expectHeard(released)
	b.Expect(b.calls.Of("delete")).To(gomega.Equal(attempts("delete", 2)))

	// An object that is deleted still exists while another controller holds it, also for the next operator.
	operator.Stop()
	b.start(adjust)
	b.expectRest()
	b.Expect(heard.Of(string(held.GetUID()))).To(gomega.BeEmpty())
	b.patch(held, `{"metadata":{"finalizers":null}}`)
	expectHeard(held)

	// The name does not matter.
	again := b.create("free", nil)
	b.expectHandled(again)
	b.Expect(heard.Of(string(again.GetUID()))).To(gomega.BeEmpty())
	b.remove(again)
	expectHeard(again)
	b.Expect(heard.All()).To(gomega.HaveLen(2 * 4))
}

// A lifecycle changes when handlers are called, but not whether they are called.
func TestLifecyclesChooseTheOrder(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lifecycle lifecycles.Lifecycle
		calls     []string // nil: any order
	}{
		"all at once":         {lifecycles.AllAtOnce, []string{"a 0", "b 0", "c 0", "b 1"}},
		"one by one":          {lifecycles.OneByOne, []string{"a 0", "b 0", "b 1", "c 0"}},
		"as soon as possible": {lifecycles.AsSoonAsPossible, []string{"a 0", "b 0", "c 0", "b 1"}},
		"randomized":          {lifecycles.Randomized, nil},
		"shuffled":            {lifecycles.Shuffled, nil},
		"one that sees the object": {func(due []lifecycles.Due) []lifecycles.Due {
			if due[0].Object.Name() == "one" && due[0].Reason == kopf.ReasonCreate {
				return due[len(due)-1:]
			}
			return due
		}, []string{"c 0", "b 0", "b 1", "a 0"}},
		"a custom lifecycle": {func(due []lifecycles.Due) []lifecycles.Due { return due[len(due)-1:] }, []string{"c 0", "b 0", "b 1", "a 0"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(examples, b.noted("a", succeed), kopf.ID("a"))
			b.OnCreate(examples, b.noted("b", failing(1, 0)), kopf.ID("b"))
			b.OnCreate(examples, b.noted("c", func(context.Context, *kopf.Change) error { return nil }), kopf.ID("c"))
			b.start(func(o *kopf.Options) { o.Settings.Execution.Lifecycle = test.lifecycle })
			b.expectHandled(b.create("one", nil))
			b.Expect(b.calls.All()).To(gomega.ConsistOf("a 0", "b 0", "b 1", "c 0"))
			if test.calls != nil {
				b.Expect(b.calls.All()).To(gomega.Equal(test.calls))
			}
		})
	}
}

// Neither operator treats the other's annotations as changes.
func TestOperatorsOfTheSameObjectsDoNotTriggerEachOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, event := range []func(func(context.Context, *kopf.Change) error){
		func(fn func(context.Context, *kopf.Change) error) { b.OnCreate(examples, fn, kopf.ID("create")) },
		func(fn func(context.Context, *kopf.Change) error) { b.OnUpdate(examples, fn, kopf.ID("update")) },
	} {
		event(func(_ context.Context, c *kopf.Change) error {
			b.calls.Note("%s %d", c.Reason(), c.Retry())
			if c.Retry() == 0 {
				return kopf.Temporary(errNotYet, 100*time.Millisecond)
			}
			return nil
		})
	}
	b.OnDelete(examples, b.noted("delete", failing(1, 100*time.Millisecond)), kopf.ID("delete"))
	b.start()
	b.start(func(o *kopf.Options) {
		o.Settings.Persistence.Finalizer = "other.example.com/finalizer"
		o.Settings.Persistence.Progress = storage.AnnotationsProgress{Prefix: "other.example.com"}
		o.Settings.Persistence.DiffBase = storage.AnnotationsDiffBase{Prefix: "other.example.com"}
	})
	twice := func(reason string) []string {
		return []string{reason + " 0", reason + " 0", reason + " 1", reason + " 1"}
	}
	obj := b.create("one", nil)
	b.Eventually(func() []string { return b.calls.Of("create") }).Should(gomega.ConsistOf(twice("create")))
	b.expectHandled(obj)
	b.expectRest()
	b.setField(obj, "2")
	b.Eventually(func() []string { return b.calls.Of("update") }).Should(gomega.ConsistOf(twice("update")))
	b.expectHandled(obj)
	b.expectRest()
	b.remove(obj)
	b.expectGone(obj)
	b.Expect(b.calls.Of("delete")).To(gomega.ConsistOf(twice("delete")))
	b.Expect(b.calls.All()).To(gomega.HaveLen(3 * 4))
}

// All annotations of an object share a limit, which others can use up.
func TestObjectWithoutRoomForItsStateIsReported(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", succeed), kopf.ID("create"))
	b.start()
	obj := testenv.NewObject("KopfExample", b.namespace, "one", nil)
	obj.SetAnnotations(map[string]string{"full": longText(256<<10 - 20)})
	b.submit(obj)
	b.Eventually(b.logged("shorten or remove other annotations of the object")).ShouldNot(gomega.BeEmpty())
	b.patch(obj, `{"metadata":{"annotations":{"full":null}}}`)
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal(attempts("create", 1)))
}
