package virtual

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// Several declarations of one function count as one handler, as in Kopf.
func TestEventHandlersAreCalledOncePerEvent(t *testing.T) {
	var called []string
	withOperator(t, func(r *kopf.Registry) {
		one := func(_ context.Context, e *kopf.WatchEvent) error {
			called = append(called, fmt.Sprint("one", e.Param()))
			return nil
		}
		two := func(context.Context, *kopf.WatchEvent) error { called = append(called, "two"); return nil }
		r.OnEvent(examples, one, kopf.ID("one"), kopf.Param(1), kopf.When(func(kopf.Arguments) bool { return false }))
		r.OnEvent(examples, one, kopf.ID("one"), kopf.Param(2))
		r.OnEvent(examples, two, kopf.ID("two"))
		r.OnEvent(examples, one, kopf.ID("one"), kopf.Param(3))
		r.OnEvent(examples, one, kopf.ID("three"), kopf.Param(4))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Minute)
		if want := []string{"one2", "two", "one4"}; !slices.Equal(called, want) {
			t.Errorf("got %q, want %q", called, want)
		}
	})
}

func TestFiltersOfEventHandlersSeeTheEvent(t *testing.T) {
	var called []watch.EventType
	withOperator(t, func(r *kopf.Registry) {
		r.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error { called = append(called, e.Type()); return nil }, kopf.ID("fn"),
			kopf.When(func(a kopf.Arguments) bool {
				e, ok := a.(*kopf.WatchEvent)
				return ok && e.Type() == watch.Deleted
			}))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		h.Patch(one, `{"spec": {"size": 4}}`)
		h.Advance(time.Minute)
		h.Delete(one)
		h.Advance(time.Minute)
		if want := []watch.EventType{watch.Deleted}; !slices.Equal(called, want) {
			t.Errorf("got %q, want %q", called, want)
		}
	})
}
