package virtual

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// waits returns a handler that waits.
func waits(duration time.Duration) func(context.Context, *kopf.Change) error {
	return func(ctx context.Context, _ *kopf.Change) error {
		select {
		case <-time.After(duration):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func ignore(context.Context, *kopf.Change) error { return nil }

func labeled(value string) kopf.Option {
	return kopf.Labels(map[string]kopf.Matcher{"is": kopf.Equal(value)})
}

// names returns the names of objects in their order.
func names(count int) (all []string) {
	for i := range count {
		all = append(all, fmt.Sprintf("object-%02d", i))
	}
	return all
}

// createAll creates objects with a label, one after the other.
func createAll(h *kopftest.Harness, label string, names ...string) {
	for _, name := range names {
		object := exampleNamed(name)
		object.SetLabels(map[string]string{"is": label})
		h.Create(object)
		h.Advance(time.Microsecond) // the order of the objects is certain
	}
}

// isHandled reports whether the cycle of an object has ended.
func isHandled(h *kopftest.Harness, name string) bool {
	object := exampleNamed(name)
	h.Get(object)
	return object.GetAnnotations()["kopf.zalando.org/last-handled-configuration"] != ""
}

func expectHandled(t *testing.T, h *kopftest.Harness, names ...string) {
	t.Helper()
	for _, name := range names {
		if !isHandled(h, name) {
			t.Errorf("%s is not handled", name)
		}
	}
}

// writesOf counts the writes to an object.
func writesOf(h *kopftest.Harness, name string) (count int) {
	for _, write := range h.Writes() {
		if strings.HasPrefix(write.Object, "kopfexamples default/"+name) {
			count++
		}
	}
	return count
}

// calledFor returns the names of the objects that a handler was called for, in the order of the calls.
func calledFor(h *kopftest.Harness, id string) (names []string) {
	for _, call := range h.Calls(id) {
		names = append(names, strings.TrimPrefix(call.Object, "default/"))
	}
	return names
}

// mostAtOnce returns how many calls ran at the same time.
func mostAtOnce(calls []kopftest.HandlerCall) (most int) {
	type edge struct {
		at   time.Time
		more int
	}
	var edges []edge
	for _, call := range calls {
		edges = append(edges, edge{call.At, 1}, edge{call.At.Add(call.Took), -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), a.more-b.more) })
	running := 0
	for _, e := range edges {
		running += e.more
		most = max(most, running)
	}
	return most
}

func fewWorkers() kopftest.Option {
	return kopftest.Settings(func(s *kopf.Settings) { s.Execution.Workers = 2 })
}

func TestWaitingHandlersHoldUpNothing(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, waits(10*time.Second), kopf.ID("slow"), labeled("slow"))
		r.OnCreate(examples, ignore, kopf.ID("fast"), labeled("fast"))
	}, func(t *testing.T, h *kopftest.Harness) {
		createAll(h, "slow", names(50)...)
		h.Advance(time.Second)
		createAll(h, "fast", "one")
		h.Advance(100 * time.Millisecond)
		expectHandled(t, h, "one")
		h.Advance(10 * time.Second)
		expectHandled(t, h, names(50)...)
		if most := mostAtOnce(h.Calls("slow")); most != 50 {
			t.Errorf("%d handlers ran at the same time", most)
		}
	}, fewWorkers())
}

// Filters that do not return occupy the workers. What the handlers of other objects have done is stored nevertheless.
func TestFiltersThatDoNotReturnHoldBackNoOutcome(t *testing.T) {
	var gate chan struct{}
	withOperator(t, func(r *kopf.Registry) {
		gate = make(chan struct{}) // in the bubble
		r.OnCreate(examples, waits(10*time.Second), kopf.ID("slow"), labeled("slow"))
		r.OnCreate(examples, ignore, kopf.ID("filtered"), labeled("filtered"), kopf.When(func(kopf.Arguments) bool {
			<-gate
			return true
		}))
	}, func(t *testing.T, h *kopftest.Harness) {
		createAll(h, "slow", names(5)...)
		createAll(h, "filtered", "a", "b", "c", "d", "e")
		h.Advance(15 * time.Second)
		expectHandled(t, h, names(5)...)
		close(gate)
		h.Advance(time.Minute)
		expectHandled(t, h, "a", "b", "c", "d", "e")
	}, fewWorkers())
}

func TestLimitServesInOrder(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		// The time before the first call does not count.
		r.OnCreate(examples, waits(10*time.Second), kopf.ID("fn"), kopf.Limit(5), kopf.Timeout(15*time.Second))
	}, func(t *testing.T, h *kopftest.Harness) {
		createAll(h, "", names(20)...)
		h.Advance(25 * time.Second)
		for name, want := range map[string]int{"object-00": 1, "object-09": 1, "object-10": 0, "object-19": 0} {
			if got := writesOf(h, name); got != want {
				t.Errorf("%d writes to %s", got, name)
			}
		}
		h.Advance(16 * time.Second)
		expectHandled(t, h, names(20)...)
		called := calledFor(h, "fn")
		for group := range slices.Chunk(called, 5) {
			slices.Sort(group) // they begin at the same time
		}
		writes := writesOf(h, "object-19")
		if most := mostAtOnce(h.Calls("fn")); most != 5 || !slices.Equal(called, names(20)) || writes != 1 {
			t.Errorf("%d at the same time, %d writes, in the order %v", most, writes, called)
		}
	}, fewWorkers())
}

func TestOtherHandlersDoNotWaitForASlot(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, waits(time.Minute), kopf.ID("limited"), kopf.Limit(1))
		r.OnCreate(examples, ignore, kopf.ID("free"))
	}, func(t *testing.T, h *kopftest.Harness) {
		createAll(h, "", "first")
		h.Advance(time.Second)
		createAll(h, "", "second")
		h.Advance(time.Second)
		if got := calledFor(h, "free"); !slices.Equal(got, []string{"second"}) || writesOf(h, "second") != 1 || isHandled(h, "second") {
			t.Errorf("called for %v; the writes are %v", got, h.Writes())
		}
		h.Advance(3 * time.Minute)
		expectHandled(t, h, "first", "second")
		if limited, free := calledFor(h, "limited"), calledFor(h, "free"); !slices.Equal(limited, []string{"first", "second"}) || !slices.Equal(free, []string{"second", "first"}) {
			t.Errorf("called for %v, %v", limited, free)
		}
	})
}

func TestSlotIsPassedOnIfItsObjectDoesNotNeedIt(t *testing.T) {
	for name, end := range map[string]func(h *kopftest.Harness, second *unstructured.Unstructured){
		"the object is gone": func(h *kopftest.Harness, second *unstructured.Unstructured) { h.Delete(second) },
		"the handler does not match": func(h *kopftest.Harness, second *unstructured.Unstructured) {
			h.Patch(second, `{"spec": {"skip": true}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withOperator(t, func(r *kopf.Registry) {
				r.OnCreate(examples, waits(time.Minute), kopf.ID("fn"), kopf.Limit(1), kopf.When(func(a kopf.Arguments) bool { return !a.Body().Spec().Has("skip") }))
			}, func(t *testing.T, h *kopftest.Harness) {
				createAll(h, "", "first", "second", "third")
				h.Advance(time.Second)
				end(h, exampleNamed("second"))
				h.Advance(2 * time.Minute)
				expectHandled(t, h, "first", "third")
				if got := calledFor(h, "fn"); !slices.Equal(got, []string{"first", "third"}) {
					t.Errorf("called for %v", got)
				}
			})
		})
	}
}

func TestNestedLimitsDoNotBlockEachOther(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
			for _, id := range []string{"x", "y"} {
				c.Subhandler(id, waits(10*time.Second), kopf.Limit(1))
			}
			return c.Execute(ctx)
		}, kopf.ID("parent"), kopf.Limit(2))
	}, func(t *testing.T, h *kopftest.Harness) {
		createAll(h, "", names(6)...)
		h.Advance(5 * time.Minute)
		expectHandled(t, h, names(6)...)
		x, y := h.Calls("parent/x"), h.Calls("parent/y")
		if parents := mostAtOnce(h.Calls("parent")); parents > 2 || mostAtOnce(x) > 1 || mostAtOnce(y) > 1 || len(x) != 6 || len(y) != 6 {
			t.Errorf("%d parents at the same time; the sub-handlers are %v, %v", parents, x, y)
		}
		for _, name := range names(6) {
			if got := writesOf(h, name); got > 4 { // at most one for each child, and one when the parent must wait
				t.Errorf("%d writes to %s", got, name)
			}
		}
	}, fewWorkers(), kopftest.Settings(func(s *kopf.Settings) { s.Execution.MaxCalls = 3 }))
}

// A sub-handler is registered in two branches of an if, each with its own limit. An object changes the branch while
// it waits.
func TestHandlerThatChangesItsLimitLeavesNoSlotBehind(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		sub := waits(10 * time.Second)
		r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
			if other, _ := c.Body().Spec().Bool("other"); other {
				c.Subhandler("sub", sub, kopf.Limit(1), kopf.Timeout(time.Hour))
			} else {
				c.Subhandler("sub", sub, kopf.Limit(1))
			}
			return nil
		}, kopf.ID("fn"))
	}, func(t *testing.T, h *kopftest.Harness) {
		createAll(h, "", "one", "two")
		h.Advance(time.Second) // two waits
		h.Patch(exampleNamed("two"), `{"spec": {"other": true}}`)
		h.Advance(time.Minute)
		createAll(h, "", "three")
		h.Advance(time.Minute)
		expectHandled(t, h, "one", "two", "three")
	})
}

func TestLongCallIsReportedOnce(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, waits(time.Hour), kopf.ID("long"), labeled("long"))
		r.OnCreate(examples, waits(9*time.Minute), kopf.ID("short"), labeled("short"))
	}, func(t *testing.T, h *kopftest.Harness) {
		createAll(h, "long", "one")
		createAll(h, "short", "two")
		h.Advance(30 * time.Minute)
		lines := linesWith(h, "The handler has been running for more than 10 minutes.")
		if len(lines) != 1 || !strings.Contains(lines[0].String(), "one") {
			t.Errorf("got %v", lines)
		}
	})
}

// An error of the framework, such as one of a write, keeps the place of the object in the line for a slot.
func TestErrorKeepsThePlaceInTheLine(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, ignore, kopf.ID("free"))
		r.OnCreate(examples, waits(time.Minute), kopf.ID("limited"), kopf.Limit(1))
	}, func(t *testing.T, h *kopftest.Harness) {
		createAll(h, "", "first")
		h.Advance(time.Second)
		failure := h.Fail(kopftest.Requests{Verb: "patch", Resource: "kopfexamples", Name: "second"}, 2, errors.New("the connection is lost"))
		createAll(h, "", "second")
		h.Advance(time.Second)
		createAll(h, "", "third")
		h.Advance(time.Hour)
		if got := calledFor(h, "limited"); !slices.Equal(got, []string{"first", "second", "third"}) || failure.Count() != 2 {
			t.Errorf("called for %v after %d failures", got, failure.Count())
		}
	})
}
