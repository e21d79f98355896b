package virtual

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/diff"
)

// A failed attempt may have had effects. The handler is called for what is there now, although its filters do not match
// the change, or the object, anymore.
func TestHandlerOfAChangeThatIsTakenBackIsCalledAgain(t *testing.T) {
	size := kopf.Field("spec.size")
	tests := map[string]struct {
		filter kopf.ChangeOption
		merges []string
	}{
		"to the former value":           {kopf.Value(kopf.Present()), []string{`{"spec": {"size": 4}}`, `{"spec": {"size": 3}}`}},
		"to none":                       {kopf.Value(kopf.Present()), []string{`{"spec": {"size": 4}}`, `{"spec": {"size": null}}`}},
		"to one that it is not for":     {kopf.Value(kopf.Equal(4)), []string{`{"spec": {"size": 4}}`, `{"spec": {"size": 3}}`}},
		"when no handler is for it now": {kopf.Value(kopf.Equal(4)), []string{`{"metadata": {"labels": {"new": null}}, "spec": {"size": 4}}`, `{"spec": {"size": 3}}`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fails := true
			var seen []any
			withOperator(t, func(r *kopf.Registry) {
				r.OnUpdate(examples, func(_ context.Context, c *kopf.Change) error {
					if fails {
						return kopf.Temporary(errors.New("not yet"), 10*time.Minute)
					}
					seen = append(seen, c.New().Any())
					return nil
				}, kopf.ID("update"), size, test.filter)
				r.OnCreate(examples, ignore, kopf.ID("create"), kopf.Labels(map[string]kopf.Matcher{"new": kopf.Equal("yes")}))
			}, func(t *testing.T, h *kopftest.Harness) {
				one := newExample()
				one.SetLabels(map[string]string{"new": "yes"})
				h.Create(one)
				h.Advance(time.Minute)
				for _, merge := range test.merges {
					h.Patch(one, merge)
					h.Advance(time.Minute)
				}
				fails = false
				h.Advance(time.Hour)
				h.Get(one)
				value, exists, _ := unstructured.NestedInt64(one.Object, "spec", "size")
				if len(seen) != 1 || exists && seen[0] != value || !exists && seen[0] != nil {
					t.Errorf("the handler has seen %v, and the object has %d", seen, value)
				}
			})
		})
	}
}

// Handlers can tell a new object from one whose former state is empty.
func TestCreationIsAnAddition(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
			if d := c.Diff(); len(d) != 1 || d[0].Op != diff.Add || d[0].Old != nil {
				t.Errorf("got %v", d)
			}
			return nil
		}, kopf.ID("create"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Minute)
		if len(h.Calls("create")) != 1 {
			t.Error("it is not called")
		}
	})
}

// A handler that is retried is dropped when its filters do not match the object anymore. The object must not look as
// if it were still retried.
func TestHandlerThatIsDroppedIsReported(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, once, kopf.ID("create"), labeled("wanted"))
	}, func(t *testing.T, h *kopftest.Harness) {
		createAll(h, "wanted", "one")
		h.Advance(time.Minute)
		h.Patch(exampleNamed("one"), `{"metadata": {"labels": null}}`)
		h.Advance(2 * time.Hour)
		if got := h.Calls("create"); len(got) != 1 || len(messages(h, "HandlerDropped")) != 1 {
			t.Errorf("got %v and the events %q", got, messages(h, "HandlerDropped"))
		}
	})
}

// The end of a cycle is reported if a handler was called or skipped in it.
func TestEndOfACycleIsReported(t *testing.T) {
	tests := map[string]struct {
		declare     func(r *kopf.Registry)
		annotations map[string]string
		want        string
	}{
		"a handler was called":  {func(r *kopf.Registry) { r.OnCreate(examples, ignore, kopf.ID("fn")) }, nil, "The creation is processed: 1 succeeded; 0 failed."},
		"a handler has failed":  {func(r *kopf.Registry) { r.OnCreate(examples, failForGood, kopf.ID("fn")) }, nil, "The creation is processed: 0 succeeded; 1 failed."},
		"a handler was skipped": {func(r *kopf.Registry) { r.OnCreate(examples, failForGood, kopf.ID("fn")) }, map[string]string{"kopf.zalando.org/request-skip": "1 fn"}, "The creation is processed: 1 succeeded; 0 failed."},
		"no handler matches":    {func(r *kopf.Registry) { r.OnUpdate(examples, ignore, kopf.ID("fn")) }, nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			withOperator(t, test.declare, func(t *testing.T, h *kopftest.Harness) {
				one := newExample()
				one.SetAnnotations(test.annotations)
				h.Create(one)
				h.Advance(time.Minute)
				expectHandled(t, h, "one")
				got := messages(h, "CycleFinished")
				if test.want == "" && len(got) > 0 || test.want != "" && (len(got) != 1 || got[0] != test.want) {
					t.Errorf("got %q", got)
				}
			})
		})
	}
}

func failForGood(context.Context, *kopf.Change) error { return kopf.Permanent(errors.New("never")) }
