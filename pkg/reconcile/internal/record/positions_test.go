package record

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// line plays a cycle on an object whose size changes. All handlers are due for changes of the
// size, except those whose names begin with "not", and those with a filter.
type line struct {
	*fixture
	ids     []string
	filters map[string]func(before, after any) bool
	// sequences contains the handlers that follow each other.
	sequences [][]string
}

// pass makes one pass over the object at a size. The handlers with these ids end in it, except
// those with a question mark, which are retried.
func (l *line) pass(size int64, ends ...string) {
	l.t.Helper()
	if c := l.call(size, ends...); c.Progress.Done() {
		l.end(c)
	} else {
		l.store(c)
	}
}

// call is a pass that has not stored anything yet.
func (l *line) call(size int64, ends ...string) *Cycle {
	l.t.Helper()
	l.resize(size)
	base, _, err := l.Base(l.t.Context(), l.body, l.report)
	l.must(err)
	reason := cause.Update
	if base == nil {
		reason = cause.Create
	}
	c := l.open(reason)
	for _, id := range ends {
		id, isRetried := strings.CutSuffix(id, "?")
		if parent, _, isSub := strings.Cut(id, "/"); isSub {
			parents := c.Progress.Load(parent)
			if !slices.Contains(parents.Subrefs, id) {
				parents.Subrefs = append(parents.Subrefs, id)
			}
			c.Progress.Register(id)
			c.Progress.Include(id, reason, false)
		}
		if !isRetried {
			c.Progress.Revise(id, succeeded)
		}
	}
	return c
}

var succeeded = call.Outcome{Final: true}

// open returns the cycle as a pass does, with the handlers that are due.
func (l *line) open(reason cause.Reason) *Cycle {
	base, old, err := l.Base(l.t.Context(), l.body, l.report)
	l.must(err)
	c := &Cycle{Reason: reason, Base: base, Old: old, New: l.Essence(l.body, nil), Progress: l.progress(l.ids...), Declared: l.ids, Sequences: l.sequences}
	c.IsDue = func(id string, before, after object.Essence) bool {
		if !slices.Contains(l.ids, id) {
			l.t.Errorf("the handler %q is not declared", id)
		}
		if filter := l.filters[id]; filter != nil {
			return filter(size(before), size(after))
		}
		return !strings.HasPrefix(id, "not") && size(before) != size(after)
	}
	l.must(l.reopen(c))
	for _, id := range l.ids {
		if c.IsDue(id, c.Old, c.New) || c.Progress.IsRetrying(id, reason) {
			c.Progress.Include(id, reason, false)
			for _, sub := range c.Progress.Load(id).Subrefs {
				c.Progress.Register(sub)
				c.Progress.Include(sub, reason, false)
			}
		}
	}
	return c
}

// String describes what is stored: the base, the open cycle, and the ended handlers.
func (l *line) String() string {
	base, _, err := l.Base(l.t.Context(), l.body, l.report)
	l.must(err)
	c := &Cycle{Reason: cause.Update, Progress: l.progress(l.ids...)}
	text := fmt.Sprintf("base %v", size(base))
	var ended []string
	for _, id := range c.Progress.Stored().IDs() {
		if c.Progress.Load(id).Finished() {
			ended = append(ended, id)
		}
	}
	kept := l.kept(c)
	if kept == nil {
		return text
	}
	text += fmt.Sprintf(", open %v %q", size(kept.First), ended)
	for _, id := range slices.Sorted(maps.Keys(kept.At)) {
		at := kept.First
		if i := kept.At[id]; i != first {
			at = kept.States[i]
		}
		text += fmt.Sprintf(" %s@%v", id, size(at))
	}
	if len(kept.Again) > 0 {
		text += fmt.Sprintf(" again %q", kept.Again)
	}
	return text
}

func TestPositions(t *testing.T) {
	tests := map[string]struct {
		ids  []string
		play func(l *line)
		want string
	}{
		"all end at one state": {[]string{"a", "b"}, func(l *line) {
			l.pass(1, "a", "b")
		}, "base 1"},
		"a corrected spec of a handler that fails alone": {[]string{"a"}, func(l *line) {
			l.pass(1)
			l.pass(2, "a")
		}, "base 2"},
		"one ends, the others are retried": {[]string{"a", "b"}, func(l *line) {
			l.pass(1, "a")
			l.pass(2)
		}, `base <nil>, open 1 ["a"]`},
		"a later end": {[]string{"a", "b", "c"}, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
		}, `base <nil>, open 1 ["a" "b"] b@2`},
		"the next cycle begins with those that are ahead": {[]string{"a", "b"}, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
		}, `base 1, open 2 ["b"]`},
		"and ends with the others": {[]string{"a", "b"}, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
			l.pass(2, "a")
		}, "base 2"},
		"handlers at three states": {[]string{"a", "b", "c"}, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
			l.pass(3, "c")
		}, `base 1, open 2 ["b"] c@3`},
		"handlers at three states, later": {[]string{"a", "b", "c"}, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
			l.pass(3, "c")
			l.pass(3, "a")
		}, `base 2, open 3 ["a" "c"]`},
		"a change after the last end": {[]string{"a", "b", "c"}, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
			l.pass(2, "c")
			l.pass(3, "a")
		}, `base 2, open 3 ["a"]`},
		"no handler misses the change": {[]string{"not a", "b"}, func(l *line) {
			l.pass(1)
			l.pass(2, "b")
		}, "base 2"},
		"a change that is taken back": {[]string{"a", "b"}, func(l *line) {
			l.pass(1, "a", "b")
			l.pass(2, "a")
			l.pass(1, "b")
		}, `base 2, open 1 ["b"]`},
		"a change that is taken back, before a call": {[]string{"a", "b"}, func(l *line) {
			l.pass(1, "a", "b")
			l.pass(2, "a")
			l.pass(1)
		}, `base 2, open 1 ["b"]`},
		"a parent is not ahead of its sub-handlers": {[]string{"p"}, func(l *line) {
			l.pass(1, "p/x")
			l.pass(2, "p/y", "p")
		}, `base 1, open 2 ["p/y"]`},
		"and ends when they are at the same state": {[]string{"p"}, func(l *line) {
			l.pass(1, "p/x")
			l.pass(2, "p/y", "p")
			l.pass(2, "p/x", "p")
		}, "base 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := &line{fixture: newFixture(t), ids: test.ids}
			test.play(l)
			if got := l.String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestAtMostEightLaterStatesAreStored(t *testing.T) {
	l := &line{fixture: newFixture(t), ids: []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "z"}}
	for i, id := range l.ids[:len(l.ids)-1] {
		l.pass(int64(i), id)
	}
	want := `base <nil>, open 0 ["a" "b" "c" "d" "e" "f" "g" "h" "i" "j" "k"] b@1 c@2 d@3 e@4 f@5 g@6 h@7 i@8 j@8 k@8 again ["j" "k"]`
	if got := l.String(); got != want {
		t.Errorf("got %s", got)
	}
}

// What counts as ended at an earlier state than it has, or than the base, does not miss that the object is back at that state.
func TestHandlersThatHaveSeenMoreAreCalledAgain(t *testing.T) {
	many := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}
	endAtMany := func(l *line) { // j counts as ended at 8
		for i, id := range l.ids[:10] {
			l.pass(int64(i), id)
		}
		l.pass(8, "k")
	}
	tests := map[string]struct {
		ids       []string
		sequences [][]string
		play      func(l *line)
		want      string
	}{
		"the handlers of a sequence": {[]string{"a", "b"}, [][]string{{"a", "b"}}, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
		}, `base 1, open 1 [] again ["a" "b"]`},
		"they are called again": {[]string{"a", "b"}, [][]string{{"a", "b"}}, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
			l.pass(1, "a", "b")
		}, "base 1"},
		"one is retried": {[]string{"a", "b"}, [][]string{{"a", "b"}}, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
			l.pass(1, "a", "b?")
		}, `base 1, open 1 ["a"] again ["b"]`},
		"they are called for a third state": {[]string{"a", "b"}, [][]string{{"a", "b"}}, func(l *line) {
			l.pass(1, "a")
			l.pass(2, "b")
			l.pass(3, "a", "b")
		}, "base 3"},
		"the handlers of a sequence, when a state comes back": {[]string{"a", "b", "y", "z"}, [][]string{{"a", "b"}}, func(l *line) {
			l.pass(1, "y")
			l.pass(2, "a")
			l.pass(1, "b")
			l.pass(3, "z")
		}, `base 1, open 3 ["z"] again ["a" "b"]`},
		"a parent": {[]string{"p"}, nil, func(l *line) {
			l.pass(1, "p/x")
			l.pass(2, "p")
		}, `base 1, open 1 [] again ["p"]`},
		"a parent is called again": {[]string{"p"}, nil, func(l *line) {
			l.pass(1, "p/x")
			l.pass(2, "p")
			l.pass(1, "p")
		}, "base 1"},
		"too many states": {many, nil, endAtMany, `base 0, open 1 ["b"] c@2 d@3 e@4 f@5 g@6 h@7 i@8 j@8 k@8 again ["j"]`},
		"too many states, when the base has reached the last one": {many, nil, func(l *line) {
			endAtMany(l)
			for range 8 {
				open := l.open(cause.Update)
				l.pass(8, slices.DeleteFunc(slices.Clone(l.ids), func(id string) bool { return !open.Progress.IsOpen(id) })...)
			}
		}, `base 8, open 8 [] again ["j"]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := &line{fixture: newFixture(t), ids: test.ids, sequences: test.sequences}
			test.play(l)
			if got := l.String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// All later states can be left out of a large annotation.
func TestHandlersThatHaveSeenMoreThanTheOnlyStateAreCalledAgain(t *testing.T) {
	l := &line{fixture: newFixture(t), ids: []string{"a", "b"}}
	l.pass(1, "a")
	c := l.call(1, "b")
	kept := l.kept(c)
	kept.Again = []string{"a"}
	if e := c.end(kept, "9"); e.next == nil || !slices.Equal(e.next.Again, []string{"a"}) || size(e.base) != int64(1) {
		t.Errorf("got %+v", e)
	}
}

// Without a record, the next cycle would not be known on the object.
func TestHandlersThatAreCalledAgainHaveARecordUnlessTheyAreAhead(t *testing.T) {
	l := &line{fixture: newFixture(t), ids: []string{"a", "b"}}
	l.pass(1, "a")
	c := l.call(1, "b")
	kept := l.kept(c)
	kept.Again = []string{"a"}
	for isAhead, want := range map[bool]bool{true: false, false: true} {
		e := ending{base: c.New}
		if isAhead {
			e.begin("9", c.New)
			setPosition(e.next, "a", 0)
		}
		c.callAgain(&e, kept, first, map[string]int{"a": 0}, nil, "9")
		if got := e.records["a"] != nil; got != want || !slices.Equal(e.next.Again, kept.Again) {
			t.Errorf("ahead: %v, record: %v, again %q", isAhead, got, e.next.Again)
		}
	}
}

func TestHandlersThatAreNotDeclaredAnymoreHoldNothingBack(t *testing.T) {
	l := &line{fixture: newFixture(t), ids: []string{"a", "b", "c"}}
	l.pass(1, "a")
	l.pass(2, "b")
	l.ids = []string{"b", "c"}
	l.pass(2, "c")
	if got := l.String(); got != "base 2" {
		t.Errorf("got %s", got)
	}
}

func TestHandlersAheadAreNotCalledByAnotherOperatorUnlessTheyAreFurther(t *testing.T) {
	l := &line{fixture: newFixture(t), ids: []string{"a", "b", "c"}}
	l.pass(1, "a")
	l.pass(2, "b")
	l.pass(3, "c")
	stored := l.progress(l.ids...)
	if got := stored.Stored().IDs(); !slices.Equal(got, []string{"b"}) || !stored.Load("b").Success || stored.Load("b").Purpose != cause.Update {
		t.Errorf("got %q, %+v", got, stored.Load("b").Record)
	}
	if c := l.open(cause.Update); c.Progress.Load("a").Finished() || !c.Progress.Load("c").Finished() {
		t.Error("handler c is ahead, and handler a is not")
	}
}
