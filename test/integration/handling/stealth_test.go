package handling

import (
	"context"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// An object that matches no handler is not touched at all.
func TestUnmatchedObjectsAreLeftAlone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		filter kopf.ChangeOption
		match  string
	}{
		"by a label":       {kopf.Labels(map[string]kopf.Matcher{"wanted": kopf.Present()}), `{"metadata":{"labels":{"wanted":""}}}`},
		"by an annotation": {kopf.Annotations(map[string]kopf.Matcher{"wanted": kopf.Equal("yes")}), `{"metadata":{"annotations":{"wanted":"yes"}}}`},
		"by a field":       {kopf.Field("spec", "wanted"), `{"spec":{"wanted":1}}`},
		"by a callback":    {kopf.When(func(a kopf.Arguments) bool { return a.Spec().Has("wanted") }), `{"spec":{"wanted":1}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			noted := b.noted("fn", func(_ context.Context, c *kopf.Change) error { b.calls.Note("%s", c.Reason()); return nil })
			b.OnCreate(examples, noted, kopf.ID("create"), test.filter)
			b.OnUpdate(examples, noted, kopf.ID("update"), test.filter)
			b.OnDelete(examples, noted, kopf.ID("delete"), test.filter)
			b.OnResume(examples, noted, kopf.ID("resume"), test.filter)
			first := b.create("first", map[string]any{"field": "1"})
			b.start()
			obj := b.create("one", map[string]any{"field": "1"})
			b.setField(obj, "2")
			b.expectRest()
			b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), b.requests.String)
			b.Expect(b.logs.With(`"object"=`)).To(gomega.BeEmpty())
			b.Expect(b.current(obj)).To(gomega.SatisfyAll(testenv.HavePath("metadata.annotations", nil), testenv.HavePath("metadata.finalizers", nil)))

			// When the object starts to match, it is new.
			b.patch(obj, test.match)
			b.expectHandled(obj)
			b.Expect(b.calls.All()).To(gomega.Equal([]string{"fn 0", "create"}))
			b.remove(first)
			b.expectGone(first)
			b.Expect(b.calls.All()).To(gomega.HaveLen(2))
		})
	}
}

// The documentation of filters recommends this: a handler of a field that no object has. It
// needs the filter, because by default the field must exist.
func TestHandlerWithoutFiltersTracksAllObjects(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnUpdate(examples, b.seeing("update", succeed), kopf.ID("update"), kopf.Labels(map[string]kopf.Matcher{"wanted": kopf.Present()}))
	b.OnField(examples, "spec.nothing", b.noted("never", succeed), kopf.ID("never"), kopf.Value(kopf.Absent()))
	b.start()
	obj := b.withFieldOne()
	b.patch(obj, `{"spec":{"field":"2"},"metadata":{"labels":{"wanted":""}}}`)
	b.expectHandled(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"update 1->2"}))
}
