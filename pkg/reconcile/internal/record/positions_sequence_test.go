package record

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// A sequence handles a change as a whole, but only those of its handlers that the change is for.
func TestSequencesEndTogether(t *testing.T) {
	tests := map[string]struct {
		ids      []string
		sequence []string
		filters  map[string]func(before, after any) bool
		play     func(l *line)
		want     string
	}{
		"no handler is due": {[]string{"a", "b"}, []string{"a", "b"}, map[string]func(before, after any) bool{"a": from(nil), "b": from(nil)}, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
		}, "base 2"},
		"one is not concerned": {[]string{"a", "b", "c"}, []string{"a", "b", "c"}, map[string]func(before, after any) bool{"c": from(nil)}, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b", "c")
		}, `base 1, open 1 [] again ["a" "b"]`},
		"one is due for the present state, and not for that of the other": {
			[]string{"a", "b", "z"},
			[]string{"a", "b"},
			map[string]func(before, after any) bool{"a": func(before, after any) bool { return before == nil || beyond(2)(before, after) }},
			func(l *line) {
				l.pass(1, "a")
				l.pass(2, "b")
				l.pass(3, "z")
			}, `base 1, open 3 ["z"] again ["a" "b"]`,
		},
		"all have ended at one state": {[]string{"a", "b", "z"}, []string{"a", "b"}, nil, func(l *line) {
			l.pass(1, "a", "b")
			l.pass(2, "z")
		}, `base 1, open 2 ["z"]`},
		"with their sub-handlers": {[]string{"a", "b"}, []string{"a", "b"}, nil, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b/x", "b")
		}, `base 1, open 1 [] again ["a" "b" "b/x"]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := &line{fixture: newFixture(t), ids: test.ids, filters: test.filters, sequences: [][]string{test.sequence}}
			test.play(l)
			if got := l.String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// The sub-handlers of p follow each other. y ends at a later state than x, so both are called again, and p with them.
func TestSubhandlersInAnOrderEndTogether(t *testing.T) {
	for name, test := range map[string]struct {
		order []handler.ChangeOption
		want  string
	}{
		"in an order":   {[]handler.ChangeOption{handler.After("x")}, `base 1, open 1 [] again ["p" "p/x" "p/y"]`},
		"independently": {nil, `base 1, open 2 ["p/y"]`},
	} {
		t.Run(name, func(t *testing.T) {
			l := &line{fixture: newFixture(t), ids: []string{"p"}}
			l.run(1, "p/y", test.order)
			if kept := l.kept(l.open(cause.Create)); len(kept.Ordered) > 0 {
				t.Errorf("p has not ended: got %+v", kept)
			}
			l.run(2, "", test.order)
			if got := l.String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// run makes a pass in which p calls its sub-handlers x and y, one of which fails.
func (l *line) run(size int64, failing string, order []handler.ChangeOption) {
	l.t.Helper()
	c := l.call(size)
	result := func(id string) func(context.Context, *handler.Call) error {
		return func(context.Context, *handler.Call) error {
			if id == failing {
				return handler.Temporary(errDown, 0)
			}
			return nil
		}
	}
	p, err := handler.Create(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, c *handler.Call) error {
		handlertest.Subhandler(c, "x", result("p/x"))
		handlertest.Subhandler(c, "y", result("p/y"), order...)
		return nil
	}), handler.ID("p"))
	l.must(err)
	runner := &call.Runner{
		Cause: &handler.Cause{Reason: c.Reason, CallContext: handler.CallContext{Body: l.body}}, Progress: c.Progress,
		Lifecycle: lifecycles.AllAtOnce, Slots: call.NewSlots(1, func(object.Key) {}), Leave: func() {}, Enter: func() {},
		BeforeAttempt: func(context.Context) error { return nil }, Interrupted: func() error { return nil },
		AfterAttempt: func(context.Context, *handler.Declaration, call.Outcome) {},
		Prepare: func(ctx context.Context, _ *handler.Declaration) (context.Context, handler.CallContext, call.EndSpan) {
			return ctx, handler.CallContext{Body: l.body}, nil
		},
	}
	l.must(runner.Run(l.t.Context(), registry.Handlers{p}))
	if c.Progress.Done() {
		l.end(c)
	} else {
		l.store(c)
	}
}

func TestHandlersThatCountOnceAreNamedOnce(t *testing.T) {
	if got := withID([]string{"a", "c"}, "c"); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("got %q", got)
	}
}

// p has ended at the first later state, without its sub-handler x. The object has changed once more since.
func TestPositionsOfHandlersThatHaveNotEnded(t *testing.T) {
	for name, test := range map[string]struct {
		hasEnded bool
		want     map[string]int
	}{
		"a sub-handler is where its parent has ended":                   {true, map[string]int{"a": first, "p": 0, "p/x": 0}},
		"a handler whose change was taken back is at the present state": {false, map[string]int{"a": first, "p": 1, "p/x": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &line{fixture: newFixture(t), ids: []string{"a", "p"}}
			l.pass(1, "a")
			c := l.call(2, "p/x?")
			if test.hasEnded {
				c.Progress.Revise("p", succeeded)
			}
			positions, _ := c.positions(c.withEnds(l.kept(c), "2", nil), 1)
			if !maps.Equal(positions, test.want) {
				t.Errorf("got %v", positions)
			}
		})
	}
}

// The states are 1, 2 and 3, and a has ended at 2.
func TestHandlersAreCalledAgainForWhatTheyHaveSeenOnly(t *testing.T) {
	for name, test := range map[string]struct {
		base int // the index of the state
		due  func(before, after any) bool
		want bool
	}{
		"the object can be back at an earlier state":    {first, func(before, after any) bool { return before != after }, true},
		"the handler does not see the difference":       {first, func(any, any) bool { return false }, false},
		"the base is at the state that it has seen":     {0, func(before, after any) bool { return before != after }, false},
		"the base is at a later state, for others only": {1, func(before, after any) bool { return before != after }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Cycle{Reason: cause.Update, Progress: newFixture(t).progress("a"), Declared: []string{"a"}, IsDue: func(_ string, before, after object.Essence) bool {
				return test.due(size(before), size(after))
			}}
			c.Progress.Include("a", cause.Update, false)
			c.Progress.Revise("a", succeeded)
			state := func(n int64) object.Essence { return object.Essence{"spec": m{"size": n}} }
			kept := &storage.Cycle{First: state(1), States: []object.Essence{state(2), state(3)}, At: map[string]int{"a": 0}}
			e := ending{base: stateAt(kept, test.base)}
			c.callAgain(&e, kept, test.base, map[string]int{"a": first}, nil, "9")
			if got := e.next != nil; got != test.want {
				t.Errorf("got %+v", e.next)
			}
		})
	}
}

// a was called for a change that was taken back, and is not declared anymore, or its filters do not match anymore.
func TestOnlyHandlersThatHaveEndedAreCalledAgain(t *testing.T) {
	for name, declared := range map[string][]string{"not declared": {"b"}, "not ended": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			l := &line{fixture: newFixture(t), ids: []string{"a", "b"}}
			if name == "not declared" {
				l.pass(1, "a")
			} else {
				l.pass(1, "b")
			}
			c := l.open(cause.Create)
			c.Declared = declared
			c.IsDue = func(string, object.Essence, object.Essence) bool { return false }
			kept := l.kept(c)
			kept.Again = []string{"a"}
			if e := c.end(kept, "9"); e.next != nil {
				t.Errorf("got %+v", e.next)
			}
		})
	}
}
