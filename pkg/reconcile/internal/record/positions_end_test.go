package record

import (
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// from returns a filter of handlers for changes from one size only.
func from(size any) func(before, after any) bool {
	return func(before, after any) bool { return before == size && after != size }
}

// beyond reports whether a change goes beyond a size, or back.
func beyond(size int64) func(before, after any) bool {
	isBeyond := func(value any) bool { n, _ := value.(int64); return n > size }
	return func(before, after any) bool { return isBeyond(before) != isBeyond(after) }
}

func TestPositionsOfSomeKindsOfHandlers(t *testing.T) {
	tests := map[string]struct {
		ids     []string
		filters map[string]func(before, after any) bool
		play    func(l *line)
		want    string
	}{
		"a handler is not due for the next change": {[]string{"a", "b"}, map[string]func(before, after any) bool{"a": from(nil)}, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
		}, "base 2"},
		// z is not due for the changes from 1 to 2 and from 1 to 3, but for that from 2 to 10.
		"a handler is due for a change between two others": {
			[]string{"a", "b", "c", "z"},
			map[string]func(before, after any) bool{"a": from(int64(1)), "b": from(int64(1)), "c": from(int64(1)), "z": beyond(9)},
			func(l *line) {
				l.end(l.cycle(cause.Create))
				l.pass(2, "a")
				l.pass(10, "b")
				l.pass(3, "c")
			}, "base 2",
		},
		"a change that is taken back, with a record of another purpose": {[]string{"a", "b"}, nil, func(l *line) {
			l.pass(1, "a", "b")
			l.pass(2, "a")
			l.put("b", storage.Record{Started: hourAgo(), Purpose: cause.Create, Success: true})
			l.pass(1)
		}, `base 2, open 1 ["b"]`},
		"a change that is taken back, after a sub-handler": {[]string{"p", "b"}, nil, func(l *line) {
			l.pass(1, "p/x", "p", "b")
			l.pass(2, "p/x", "b")
			l.pass(1)
		}, "base 2"},
		"a change that is taken back, before a sub-handler": {[]string{"p", "b"}, nil, func(l *line) {
			l.pass(1, "p/x", "p/y", "p", "b")
			l.pass(2, "p/x", "p/y?", "b")
			l.pass(1)
		}, `base 2, open 1 ["p/y"]`},
		"a change that is taken back, after a handler with a longer id": {[]string{"p/d", "p"}, nil, func(l *line) {
			l.pass(1, "p/d", "p")
			l.pass(2, "p/d")
			l.pass(1)
		}, `base 2, open 1 ["p"]`},
		"a handler and its sub-handlers are ahead": {[]string{"b", "p"}, nil, func(l *line) {
			l.pass(1, "b")
			l.pass(2, "p/x", "p/y", "p")
		}, `base 1, open 2 ["p" "p/x" "p/y"]`},
		"a handler ends with its sub-handler": {[]string{"b", "p", "z"}, nil, func(l *line) {
			l.pass(1, "b")
			l.pass(2, "p/x", "p")
		}, `base <nil>, open 1 ["b" "p" "p/x"] p@2 p/x@2`},
		"a handler that is not declared anymore is ahead": {[]string{"a", "b", "c"}, nil, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
			l.pass(3, "c")
			l.ids = []string{"a", "b"}
			l.pass(3, "a")
		}, `base 2, open 3 ["a"]`},
		"a handler that is not declared anymore must be called": {[]string{"a", "b", "c"}, nil, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
			l.pass(3, "c")
			l.ids = []string{"a", "b"}
			l.put("c", storage.Record{Started: hourAgo(), Purpose: cause.Update})
			l.pass(3, "a")
		}, `base 2, open 3 ["a"]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := &line{fixture: newFixture(t), ids: test.ids, filters: test.filters}
			test.play(l)
			if got := l.String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestReferencesToSubhandlersAheadAreSorted(t *testing.T) {
	l := &line{fixture: newFixture(t), ids: []string{"b", "p"}}
	l.pass(1, "b")
	l.pass(2, "p/x", "p/y", "p/z", "p")
	if got := l.progress(l.ids...).Load("p").Subrefs; !slices.Equal(got, []string{"p/x", "p/y", "p/z"}) {
		t.Errorf("got %q", got)
	}
}

// The record of the declared handler is there for the reference only: it has not ended at the first state.
func TestSubhandlersFurtherAheadAreReferredTo(t *testing.T) {
	l := &line{fixture: newFixture(t), ids: []string{"a", "b", "p"}}
	l.pass(1, "a")
	l.pass(2, "b")
	l.pass(3, "p/x", "p")
	if got := l.String(); got != `base 1, open 2 ["b"] p@3 p/x@3` {
		t.Errorf("got %s", got)
	}
	if got := l.progress(l.ids...).Load("p"); got.Finished() || !slices.Equal(got.Subrefs, []string{"p/x"}) {
		t.Errorf("got %+v", got.Record)
	}
}

// A new record of the parent does not lose the sub-handlers that are ahead, or that must be called again.
func TestNewRecordsReferToSubhandlersOfTheOpenCycle(t *testing.T) {
	f := newFixture(t)
	c := &Cycle{Reason: cause.Update, Progress: f.progress("p", "a"), Declared: []string{"p", "a"}}
	c.Progress.Include("a", cause.Update, false)
	c.Progress.MarkStored()
	c.Reopen(Stored{Open: &storage.Cycle{Token: "7", At: map[string]int{"p/x": 0}, Again: []string{"p/y"}}})
	if got := c.Progress.Include("p", cause.Update, false); !slices.Equal(got.Subrefs, []string{"p/x", "p/y"}) {
		t.Errorf("got %+v", got.Record)
	}
}

func TestStatesAreStoredOnce(t *testing.T) {
	l := &line{fixture: newFixture(t), ids: []string{"a", "b", "c", "d", "e", "z"}}
	for i, size := range []int64{1, 2, 3, 2, 3} {
		l.pass(size, l.ids[i])
	}
	kept := l.kept(l.open(cause.Create))
	if got := l.String(); got != `base <nil>, open 1 ["a" "b" "c" "d" "e"] b@2 c@3 d@2 e@3` || len(kept.States) != 2 {
		t.Errorf("got %s with %d states", got, len(kept.States))
	}
}

func TestHandlersThatEndAtTheFirstStateAgainAreNotAhead(t *testing.T) {
	c := &storage.Cycle{At: map[string]int{"a": 0, "b": 1}}
	setPosition(c, "a", first)
	if len(c.At) != 1 || position(c, "a") != first {
		t.Errorf("got %v", c.At)
	}
}

// A handler is called through its parent: the parent must not be ahead of it, if the parent
// still wants it to be called. A sub-handler that is not called is where its parent is.
func TestParentsAreNotAheadOfTheirSubhandlers(t *testing.T) {
	tests := map[string]struct {
		isRegistered, isCalled, hasEnded bool
		want, wantSub                    int
	}{
		"the sub-handler has ended before":          {true, true, true, first, first},
		"the sub-handler has not ended":             {true, true, false, 0, 0},
		"the sub-handler is not registered anymore": {false, true, true, 0, 0},
		"the parent has ended without a call":       {false, false, true, first, first},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.put("p", storage.Record{Started: hourAgo(), Purpose: cause.Create, Subrefs: []string{"p/x"}})
			f.put("p/x", storage.Record{Started: hourAgo(), Purpose: cause.Create, Success: test.hasEnded})
			other := f.cycle(cause.Create, "other")
			other.Progress.Fail("other", errDown)
			f.store(other)
			f.resize(2)
			c := f.cycle(cause.Create, "other", "p")
			if test.isRegistered {
				c.Progress.Register("p/x")
			}
			if test.isCalled {
				c.Progress.Load("p").Retries++
			}
			c.Progress.Fail("p", errDown)
			f.store(c)
			positions, _ := c.positions(f.kept(c), 0)
			if positions["p"] != test.want || positions["p/x"] != test.wantSub {
				t.Errorf("got %v", positions)
			}
		})
	}
}

// While a pass was busy, another operator has ended the handler a at an earlier state.
func TestOvertakenHandlersStayAtTheirPosition(t *testing.T) {
	f := newFixture(t)
	theirs, c := f.cycle(cause.Create, "a", "b", "c"), f.cycle(cause.Create, "a", "b", "c")
	theirs.Progress.Fail("a", errDown)
	f.store(theirs)
	f.resize(2)
	c.New = f.Essence(f.body, nil)
	c.Progress.Fail("a", errDown)
	c.Progress.Fail("b", errDown)
	f.apply(func(into storage.Patch) error {
		return f.Store(t.Context(), c, f.body, into, f.report, overtakenAre("a"))
	})
	if kept := f.kept(c); size(kept.First) != int64(1) || len(kept.At) != 1 || kept.At["b"] != 0 {
		t.Errorf("got %+v", kept)
	}
}

func TestOnlyHandlersOfAChangeAreAheadOfIt(t *testing.T) {
	for reason, want := range map[cause.Reason]bool{cause.Update: true, cause.Resume: false, cause.Delete: false} {
		l := &line{fixture: newFixture(t), ids: []string{"a", "b", "c"}}
		l.pass(1, "a")
		l.pass(2, "b")
		l.pass(3, "c")
		if got := l.open(reason).Progress.Load("c").Finished(); got != want {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}

func TestStatesHaveNoRecords(t *testing.T) {
	f := newFixture(t)
	f.put("a", storage.Record{Started: hourAgo(), Purpose: cause.Update, Cycle: "7"})
	left := `{"cycle":"7","first":{"metadata":{"annotations":{"kopf.zalando.org/fn":"{}"}}},"states":[{"metadata":{"annotations":{"kopf.zalando.org/fn":"{}"}}}]}`
	f.change(m{"metadata": m{"annotations": m{startedKey: left}}})
	kept := f.kept(f.cycle(cause.Update, "a"))
	for _, state := range append([]object.Essence{kept.First}, kept.States...) {
		if got, _ := object.Lookup(state, object.Path{"metadata", "annotations", "kopf.zalando.org/fn"}); got != nil {
			t.Errorf("got %v", state)
		}
	}
	if len(kept.States) != 1 {
		t.Errorf("got %+v", kept)
	}
}

// The next cycle counts its failures, too.
func TestFailedHandlersThatAreAheadHaveFailed(t *testing.T) {
	f, c := open(t)
	c.Progress.Fail("c", errDown)
	f.end(c)
	next := f.progress("a", "b", "c").Load("b")
	if !next.Failure || next.Success || next.Message != errDown.Error() || !next.Stopped.Equal(next.Started) {
		t.Errorf("got %+v", next.Record)
	}
}

func TestSubhandlersThatHaveNotEndedHaveNoPosition(t *testing.T) {
	f := newFixture(t)
	c := f.cycle(cause.Create, "a", "p")
	c.Progress.Fail("a", errDown)
	c.Progress.Include("p/x", cause.Create, false)
	c.Progress.Load("p").Subrefs = []string{"p/x"}
	f.store(c)
	f.resize(2)
	c = f.cycle(cause.Create, "a", "p")
	c.Progress.Load("p").Retries++ // it was called, and did not register p/x again
	c.Progress.Fail("p", errDown)
	f.store(c)
	if got := f.kept(c).At; len(got) != 1 || got["p"] != 0 {
		t.Errorf("got %v", got)
	}
}
