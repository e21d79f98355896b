package record

import (
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// halfway returns an object with the annotations of the next cycle, and the records of the ended
// one. Two sub-handlers of p have seen the change to 3; one has not, so p has not either.
func halfway(t *testing.T) *line {
	l := &line{fixture: newFixture(t), ids: []string{"p"}}
	l.Storages.Progress = storage.StatusProgress{}
	l.pass(1, "p")
	l.pass(2, "p/w", "p?")
	l.endHalfway(l.call(3, "p/x", "p/y", "p"))
	return l
}

func TestNextWriteReplacesTheRecordsOfTheEndedCycle(t *testing.T) {
	l := halfway(t)
	c := l.call(3, "p?")
	c.Progress.Load("p").Retries = 7
	l.store(c)
	if got := l.String(); got != `base 2, open 3 ["p/x" "p/y"] p/x@3 p/y@3` {
		t.Errorf("got %s", got)
	}
	if got := l.progress("p").Load("p"); got.Retries != 7 {
		t.Errorf("the record of the called handler stays: got %+v", got.Record)
	}
}

// Those that must be called again are in the annotation first, and have records with the next write.
func TestNextWriteAddsTheRecordsOfHandlersThatMustBeCalledAgain(t *testing.T) {
	l := &line{fixture: newFixture(t), ids: []string{"a", "b", "c"}, sequences: [][]string{{"a", "b"}}}
	l.Storages.Progress = storage.StatusProgress{}
	l.pass(1, "a")
	l.endHalfway(l.call(2, "b", "c"))
	const halfway = `base 1, open 2 [] c@2 again ["a" "b"]`
	if got := l.String(); got != halfway {
		t.Errorf("got %s after the first write", got)
	}
	l.pass(1, "a")
	if got := l.String(); got != `base 1, open 2 ["a" "c"] a@1 c@2 again ["b"]` {
		t.Errorf("got %s after the second write", got)
	}
	if b := l.progress(l.ids...).Load("b").Stored(); b == nil || b.Finished() {
		t.Errorf("got %+v", b)
	}
	l.pass(1, "b")
	l.pass(1, "c")
	if got := l.String(); got != "base 1" {
		t.Errorf("got %s in the end", got)
	}
}

// The pass cannot call b, because the object does not fit its Go type, for example; c is not declared anymore.
func TestNextWriteAddsTheRecordsOfHandlersThatItDoesNotCall(t *testing.T) {
	l := &line{fixture: newFixture(t), ids: []string{"a", "b", "c"}, sequences: [][]string{{"a", "b", "c"}}}
	l.Storages.Progress = storage.StatusProgress{}
	l.pass(1, "a")
	l.endHalfway(l.call(2, "b", "c"))
	if got := l.String(); got != `base 1, open 1 [] again ["a" "b" "c"]` {
		t.Errorf("got %s", got)
	}
	c := &Cycle{Reason: cause.Update, New: l.Essence(l.body, nil), Progress: l.progress(l.ids...), Declared: []string{"a", "b"}}
	l.must(l.reopen(c))
	c.Progress.Include("a", cause.Update, false)
	l.store(c)
	if got := l.progress("a", "b", "c").Stored().IDs(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q", got)
	}
}

// The end was written halfway, and there is no next cycle. Then the object changes.
func TestNextWriteRemovesTheRecordsOfTheEndedCycle(t *testing.T) {
	f, c := twoEnds(t)
	c.IsDue = func(string, object.Essence, object.Essence) bool { return false }
	f.endHalfway(c)
	f.resize(4)
	c = &Cycle{Reason: cause.Update, New: f.Essence(f.body, nil), Progress: f.progress("a", "b"), Declared: []string{"a", "b"}}
	c.Progress.Include("a", cause.Update, false)
	f.store(c)
	progress := f.progress("a", "b")
	if got := progress.Stored().IDs(); !slices.Equal(got, []string{"a"}) || progress.Load("a").Finished() {
		t.Errorf("got %q, %+v", got, progress.Load("a").Record)
	}
}

// The record of p, which refers to a sub-handler that is ahead, is there already.
func TestRecordsOfHandlersAheadAreWrittenOnce(t *testing.T) {
	l := &line{fixture: newFixture(t), ids: []string{"a", "b", "p"}}
	l.pass(1, "a")
	l.pass(2, "b")
	l.pass(3, "p/x", "p")
	if got := annotations(l.store(l.call(3))); len(got) != 1 || got["kopf.zalando.org/a"] == nil {
		t.Errorf("got %v", got)
	}
}

func TestNextWriteAddsNoRecordsOfHandlersThatAreNotDeclaredAnymore(t *testing.T) {
	f, c := twoEnds(t)
	f.endHalfway(c)
	f.store(f.cycle(cause.Update, "a")) // b was ahead
	if got, _ := f.Unknown(t.Context(), f.body, []string{"a"}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("got %q", got)
	}
}

func TestEveryErrorOfAStorageIsReturnedAfterTheFirstOfTwoWrites(t *testing.T) {
	tests := map[string]struct {
		calls int // of the storage
		do    func(f *fixture, c *Cycle) error
	}{
		"Progress": {3, func(f *fixture, _ *Cycle) error {
			_, err := f.Progress(t.Context(), f.body, []string{"p"}, f.report)
			return err
		}},
		"Store": {11, func(f *fixture, c *Cycle) error {
			return f.Store(t.Context(), c, f.body, storage.Patch{}, f.report, overtakenAre())
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			calls := failEachCall(t, func() (*fixture, *Cycle) {
				l := halfway(t)
				return l.fixture, l.cycle(cause.Update, "p")
			}, test.do)
			if calls != test.calls {
				t.Errorf("got %d calls", calls)
			}
		})
	}
}
