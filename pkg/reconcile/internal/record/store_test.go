package record

import (
	"errors"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestStoreKeepsTheEssenceThatTheCycleBeganWith(t *testing.T) {
	f := newFixture(t)
	f.store(f.cycle(cause.Create, "a"))
	f.change(m{"spec": m{"size": int64(2)}})
	if first := f.first(f.progress("a")); size(first) != int64(1) || first[sinceKey] != nil {
		t.Errorf("got %v", first)
	}
	resumed := f.cycle(cause.Create, "a")
	resumed.Resumed = true
	resumed.Progress.Fail("a", errDown)
	f.store(resumed)
	if first := f.first(f.progress("a")); size(first) != int64(1) {
		t.Errorf("a later pass has changed it: %v", first)
	}
}

func TestStoreKeepsTheEssenceOfChangesOnly(t *testing.T) {
	for reason, want := range map[cause.Reason]bool{cause.Create: true, cause.Update: true, cause.Resume: false, cause.Delete: false} {
		f := newFixture(t)
		f.store(f.cycle(reason, "a"))
		if got := f.first(f.progress("a")) != nil; got != want {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}

// An operator of Kopf finishes a cycle and leaves the essence behind, which it does not
// know. It must not become that of a later cycle.
func TestFirstIgnoresTheEssenceOfAnOlderCycle(t *testing.T) {
	tests := map[string]struct {
		started time.Time
		want    bool
	}{
		"the record is older than the essence":   {hoursAgo(1), true},
		"the record is younger than the essence": {hoursAgo(-1), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.store(f.cycle(cause.Create, "a"))
			f.put("a", storage.Record{Started: test.started, Purpose: cause.Update})
			if first := f.first(f.progress("a")); (first != nil) != test.want {
				t.Errorf("got %v", first)
			}
		})
	}
	t.Run("there is no record", func(t *testing.T) {
		f := newFixture(t)
		f.store(f.cycle(cause.Create))
		if first := f.first(f.progress("a")); first != nil {
			t.Errorf("got %v", first)
		}
	})
	t.Run("the essence has no time", func(t *testing.T) {
		f := newFixture(t)
		f.put("a", storage.Record{Started: hoursAgo(1), Purpose: cause.Update})
		f.apply(func(into storage.Patch) error {
			return f.Storages.DiffBase.(storage.CycleBase).StoreCycle(t.Context(), f.body, into, f.Essence(f.body, nil))
		})
		if first := f.first(f.progress("a")); first != nil {
			t.Errorf("got %v", first)
		}
	})
}

func TestStoreWritesWhatHasChangedOnly(t *testing.T) {
	f := newFixture(t)
	f.put("old", storage.Record{Started: hoursAgo(1), Purpose: cause.Create})
	c := f.cycle(cause.Create, "old", "new")
	c.Resumed = true
	if got := annotations(f.store(c)); len(got) != 1 || got["kopf.zalando.org/new"] == nil {
		t.Errorf("got %v", got)
	}
	c.Progress.MarkStored()
	if got := f.store(c); len(got) != 0 {
		t.Errorf("the same again: got %v", got)
	}
}

func TestStoreLeavesAnOvertakenRecordAndTheirEssence(t *testing.T) {
	f := newFixture(t)
	c := f.cycle(cause.Create, "a", "b")
	into := f.apply(func(into storage.Patch) error { return f.Store(t.Context(), c, f.body, into, overtakenAre("a")) })
	if got := annotations(into); len(got) != 1 || got["kopf.zalando.org/b"] == nil {
		t.Errorf("got %v", got)
	}
	unknown := func(string) (bool, error) { return false, errDown }
	if err := f.Store(t.Context(), c, f.body, storage.Patch{}, unknown); !errors.Is(err, errDown) {
		t.Errorf("got %v", err)
	}
}

func TestPurgeRemovesTheRecordsAndTheEssenceOfTheCycle(t *testing.T) {
	f := newFixture(t)
	f.store(f.cycle(cause.Create, "a", "b"))
	f.put("unknown", storage.Record{Started: hoursAgo(1), Purpose: cause.Create})
	c := f.cycle(cause.Create, "a", "b", "never stored")
	f.apply(func(into storage.Patch) error { return f.Purge(t.Context(), c, f.body, into) })
	left := f.progress("a", "b", "unknown").Stored()
	if len(left) != 1 || left[0] != "unknown" {
		t.Errorf("got %q", left)
	}
	if first := f.first(f.progress("unknown")); first != nil {
		t.Errorf("got %v", first)
	}
	again := f.cycle(cause.Create, "a", "b")
	if into := f.apply(func(into storage.Patch) error { return f.Purge(t.Context(), again, f.body, into) }); len(into) != 0 {
		t.Errorf("there is nothing to remove: got %v", into)
	}
}

func TestEndMakesTheFirstEssenceTheBase(t *testing.T) {
	f := newFixture(t)
	c := f.cycle(cause.Create, "a")
	f.store(c)
	f.change(m{"spec": m{"size": int64(2)}}) // this is the next change
	f.end(c)
	base, _, err := f.Base(t.Context(), f.body, f.report)
	f.must(err)
	if size(base) != int64(1) || len(f.progress("a").Stored()) > 0 {
		t.Errorf("got %v, %q", base, f.progress("a").Stored())
	}
}

func TestEndLeavesTheBaseOfWhatHasNotChanged(t *testing.T) {
	tests := map[string]struct {
		reason  cause.Reason
		handled bool // before
		change  m
		want    bool
	}{
		"a creation":                    {cause.Create, false, m{}, true},
		"an update":                     {cause.Update, true, m{"spec": m{"size": int64(2)}}, true},
		"a resumption without a change": {cause.Resume, true, m{}, false},
		"a resumption with a change":    {cause.Resume, true, m{"spec": m{"size": int64(2)}}, true},
		"a deletion":                    {cause.Delete, true, m{"spec": m{"size": int64(2)}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if test.handled {
				f.end(f.cycle(cause.Create))
			}
			f.change(test.change)
			if got := len(annotations(f.end(f.cycle(test.reason)))) > 0; got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestEndReportsHashesOnce(t *testing.T) {
	f := newFixture(t)
	f.change(m{"apiVersion": "v1", "kind": "Secret", "data": m{"password": "c2VjcmV0"}, "spec": nil})
	for range 2 {
		c := f.cycle(cause.Create)
		c.Old, c.First = nil, object.Essence{"data": m{"password": "c2VjcmV0"}}
		f.end(c)
	}
	if len(f.log) != 1 {
		t.Errorf("got %q", f.log)
	}
}

func TestFailHandlerTakesTheSuccessBack(t *testing.T) {
	f := newFixture(t)
	c := f.cycle(cause.Delete, "a", "b")
	c.Unreported, c.HoldOnFailure = []string{"a", "b"}, []string{"b"}
	if !c.FailHandler("a", errDown) || c.FailHandler("event handler", errDown) || (*Cycle)(nil).FailHandler("a", errDown) {
		t.Error("it fails a handler that the cycle does not have, or none")
	}
	if len(c.Unreported) != 1 || c.Unreported[0] != "b" || !c.Progress.Load("a").Failure || c.HeldByFailure() != "" {
		t.Errorf("got %q, %+v, %q", c.Unreported, c.Progress.Load("a").Record, c.HeldByFailure())
	}
	c.FailHandler("b", errDown)
	if c.HeldByFailure() != "b" {
		t.Errorf("got %q", c.HeldByFailure())
	}
}
