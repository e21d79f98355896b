package record

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestFirstStateIsThatOfTheFirstEnd(t *testing.T) {
	f := newFixture(t)
	f.store(f.cycle(cause.Create, "a", "b"))
	if kept := f.kept(f.cycle(cause.Create, "a", "b")); kept != nil {
		t.Errorf("nothing has ended: got %+v", kept)
	}
	f.resize(2)
	c := f.cycle(cause.Create, "a", "b")
	c.Progress.Fail("a", errDown)
	f.store(c)
	f.resize(3)
	c = f.cycle(cause.Create, "a", "b")
	kept := f.kept(c)
	if size(kept.First) != int64(2) || len(kept.States) > 0 || kept.Token != "2" || c.Progress.Load("a").Cycle != "2" {
		t.Errorf("got %+v", kept)
	}
	c.Progress.Fail("b", errDown)
	f.store(c)
	if kept = f.kept(c); size(kept.First) != int64(2) || size(kept.States[0]) != int64(3) || kept.At["b"] != 0 || kept.Token != "2" {
		t.Errorf("got %+v", kept)
	}
}

func TestOnlyChangesHaveStates(t *testing.T) {
	for reason, want := range map[cause.Reason]bool{cause.Create: true, cause.Update: true, cause.Resume: false, cause.Delete: false} {
		f := newFixture(t)
		c := f.cycle(reason, "a", "b")
		c.Progress.Fail("a", errDown)
		f.store(c)
		_, got := annotations(f.body.Raw())[startedKey]
		if got != want {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}

const startedKey = "kopf.zalando.org/last-handled-configuration-started"

// An operator of Kopf finishes a cycle and leaves the states behind, which it does not
// know. They must not become those of a later cycle.
func TestStatesOfAFinishedCycleDoNotCount(t *testing.T) {
	tests := map[string]struct {
		left string // by an earlier cycle
		r    storage.Record
		want bool
	}{
		"the record has the token":                 {`{"cycle":"7","first":{}}`, storage.Record{Cycle: "7"}, true},
		"the record has another token":             {`{"cycle":"7","first":{}}`, storage.Record{Cycle: "8"}, false},
		"the record has no token":                  {`{"cycle":"7","first":{}}`, storage.Record{}, false},
		"the record began before":                  {`{"kopf-cycle-since":"2024-01-02T00:00:00Z"}`, storage.Record{Started: date(1)}, true},
		"the record began before, and has a token": {`{"kopf-cycle-since":"2024-01-02T00:00:00Z"}`, storage.Record{Started: date(1), Cycle: "7"}, true},
		"the record began later":                   {`{"kopf-cycle-since":"2024-01-02T00:00:00Z"}`, storage.Record{Started: date(3)}, false},
		"the former format has no time":            {`{}`, storage.Record{Started: date(1)}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			test.r.Purpose = cause.Update
			f.put("a", test.r)
			f.change(m{"metadata": m{"annotations": m{startedKey: test.left}}})
			if kept := f.kept(f.cycle(cause.Update, "a")); (kept != nil) != test.want {
				t.Errorf("got %+v", kept)
			}
		})
	}
}

func date(day int) time.Time { return time.Date(2024, 1, day, 0, 0, 0, 0, time.UTC) }

// The first write of a deletion removes what remains of the cycle that the deletion has ended. An operator of
// Kopf that continued the deletion would remove it later, with the ends of deletion handlers.
func TestDeletionRemovesTheCycleThatItHasEnded(t *testing.T) {
	f := newFixture(t)
	update := f.cycle(cause.Update, "both", "updated")
	update.Progress.Fail("updated", errDown)
	f.store(update)
	f.put("parent", storage.Record{Started: hourAgo(), Purpose: cause.Update, Subrefs: []string{"parent/sub"}})
	f.put("parent/sub", storage.Record{Started: hourAgo(), Purpose: cause.Update})
	f.put("unknown", storage.Record{Started: hourAgo()}) // the former format has no purpose

	deletion := &Cycle{Reason: cause.Delete, Progress: f.progress("both", "updated", "parent", "unknown", "deleted")}
	f.store(deletion) // no handler has been called
	if got := len(annotations(f.body.Raw())); got != 6 {
		t.Errorf("got %v", annotations(f.body.Raw()))
	}
	deletion.Progress.Include("both", cause.Delete, false)
	deletion.Progress.Include("deleted", cause.Delete, false)
	deletion.Progress.Fail("both", errDown)
	f.store(deletion)
	got := slices.Sorted(maps.Keys(annotations(f.body.Raw())))
	if want := []string{"kopf.zalando.org/both", "kopf.zalando.org/deleted", startedKey, "kopf.zalando.org/unknown"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestStoreWritesWhatHasChangedOnly(t *testing.T) {
	f := newFixture(t)
	f.put("old", storage.Record{Started: hourAgo(), Purpose: cause.Create})
	c := f.cycle(cause.Create, "old", "new")
	if got := annotations(f.store(c)); len(got) != 1 || got["kopf.zalando.org/new"] == nil {
		t.Errorf("got %v", got)
	}
	c.Progress.MarkStored()
	if got := f.store(c); len(got) != 0 {
		t.Errorf("the same again: got %v", got)
	}
}

func TestStoreLeavesAnOvertakenRecordAndItsPosition(t *testing.T) {
	f := newFixture(t)
	theirs := f.cycle(cause.Create, "a", "b", "c")
	theirs.Progress.Fail("a", errDown)
	f.store(theirs)
	f.resize(2)
	c := f.cycle(cause.Create, "a", "b", "c")
	c.Progress.Load("a").Record = storage.Record{Purpose: cause.Create}
	for _, id := range []string{"a", "b"} {
		c.Progress.Fail(id, errDown)
	}
	into := f.apply(func(into storage.Patch) error {
		return f.Store(t.Context(), c, f.body, into, f.report, overtakenAre("a"))
	})
	if got := annotations(into); got["kopf.zalando.org/a"] != nil || got["kopf.zalando.org/b"] == nil {
		t.Errorf("got %v", got)
	}
	if kept := f.kept(c); size(kept.First) != int64(1) || len(kept.At) != 1 || kept.At["b"] != 0 {
		t.Errorf("got %+v", kept)
	}
	unknown := func(string) (bool, error) { return false, errDown }
	if err := f.Store(t.Context(), c, f.body, storage.Patch{}, f.report, unknown); !errors.Is(err, errDown) {
		t.Errorf("got %v", err)
	}
}

func TestPurgeRemovesTheRecordsAndTheEssenceOfTheCycle(t *testing.T) {
	f := newFixture(t)
	ended := f.cycle(cause.Create, "a", "b")
	ended.Progress.Fail("a", errDown)
	f.store(ended)
	f.put("unknown", storage.Record{Started: hourAgo(), Purpose: cause.Create})
	c := f.cycle(cause.Create, "a", "b", "never stored")
	f.apply(func(into storage.Patch) error { return f.Purge(t.Context(), c, f.body, into) })
	left := f.progress("a", "b", "unknown").Stored().IDs()
	if len(left) != 1 || left[0] != "unknown" {
		t.Errorf("got %q", left)
	}
	if _, left := annotations(f.body.Raw())[startedKey]; left {
		t.Error("the states are left")
	}
	again := f.cycle(cause.Create, "a", "b")
	if into := f.apply(func(into storage.Patch) error { return f.Purge(t.Context(), again, f.body, into) }); len(into) != 0 {
		t.Errorf("there is nothing to remove: got %v", into)
	}
}

// Another operator can have called the handler since this one has read the object.
func TestEndRemovesTheRecordsOfSubhandlersThatOthersHaveAdded(t *testing.T) {
	f := newFixture(t)
	c := f.cycle(cause.Resume, "parent")
	f.put("parent", storage.Record{Started: hourAgo(), Purpose: cause.Update, Subrefs: []string{"parent/a", "parent/b"}})
	f.put("parent/a", storage.Record{Started: hourAgo(), Purpose: cause.Update})
	f.end(c)
	if left := f.progress("parent", "parent/a", "parent/b").Stored().IDs(); len(left) != 0 {
		t.Errorf("got %q", left)
	}
}

// A restart ends a cycle for every object, so nothing is read twice there.
func TestEndReadsTheRecordsAgainOnlyOnAnotherVersion(t *testing.T) {
	for version, want := range map[string]int{"1": 0, "2": 2} {
		f := newFixture(t)
		f.put("a", storage.Record{Started: hourAgo(), Purpose: cause.Resume})
		c := f.cycle(cause.Resume, "a", "b")
		c.Version = f.body.ResourceVersion()
		f.change(m{"metadata": m{"resourceVersion": version}})
		read := 0
		f.Storages.Progress = countedProgress{f.Storages.Progress, &read}
		f.end(c)
		if read != want {
			t.Errorf("version %s: read %d records, want %d", version, read, want)
		}
		if left := f.progress("a", "b").Stored().IDs(); len(left) != 0 {
			t.Errorf("version %s: left %q", version, left)
		}
	}
}

// countedProgress counts the records that are read.
type countedProgress struct {
	storage.Progress

	read *int
}

func (p countedProgress) Fetch(ctx context.Context, body *object.Body, id string) (*storage.Record, error) {
	*p.read++
	return p.Progress.Fetch(ctx, body, id)
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

// A database needs no write of a value that it has.
func TestEndDoesNotStoreTheSameBaseAgain(t *testing.T) {
	f := newFixture(t)
	f.end(f.cycle(cause.Create))
	c := f.cycle(cause.Resume)
	f.Storages.DiffBase = fullBase{f.Storages.DiffBase}
	f.end(c)
	f.resize(2)
	c = f.cycle(cause.Update)
	if err := f.End(t.Context(), c, f.body, storage.Patch{}, f.report); !errors.Is(err, errDown) {
		t.Errorf("got %v", err)
	}
}

// fullBase is a storage that stores nothing anymore.
type fullBase struct{ storage.DiffBase }

func (fullBase) Store(context.Context, *object.Body, storage.Patch, object.Essence) error {
	return errDown
}

func TestEndReportsHashesOnce(t *testing.T) {
	f := newFixture(t)
	f.change(m{"apiVersion": "v1", "kind": "Secret", "data": m{"password": "c2VjcmV0"}, "spec": nil})
	for range 2 {
		c := f.cycle(cause.Create)
		c.Old, c.New = nil, object.Essence{"data": m{"password": "c2VjcmV0"}}
		f.end(c)
		if len(f.log) != 1 {
			t.Errorf("got %q", f.log)
		}
	}
}

func TestEndReportsNoHashesOfAnotherObject(t *testing.T) {
	f := newFixture(t)
	f.end(f.cycle(cause.Create))
	if len(f.log) != 0 {
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

// The next write of a deletion leaves the handlers that have ended before.
func TestDeletionKeepsItsRecords(t *testing.T) {
	f := newFixture(t)
	f.put("first", storage.Record{Started: hourAgo(), Purpose: cause.Delete, Success: true})
	c := f.cycle(cause.Delete, "first", "second")
	c.Progress.Fail("second", errDown)
	f.store(c)
	if got := f.progress("first", "second").Stored().IDs(); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("got %q", got)
	}
}

func TestUnreadableRecordsDoNotHoldUpTheEnd(t *testing.T) {
	f := newFixture(t)
	f.put("a", storage.Record{Started: hourAgo(), Purpose: cause.Create})
	f.change(m{"metadata": m{"annotations": m{"kopf.zalando.org/b": "{broken"}}})
	c := f.cycle(cause.Create, "a", "b")
	f.apply(func(into storage.Patch) error { return f.Purge(t.Context(), c, f.body, into) })
	if got := f.progress("a", "b").Stored().IDs(); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// The change was taken back, so that both handlers have ended at the base.
func TestEndRemovesTheStates(t *testing.T) {
	f := newFixture(t)
	f.end(f.cycle(cause.Create))
	outcomes := func(size int64, x, y call.Outcome) *Cycle {
		f.resize(size)
		c := f.cycle(cause.Update, "x", "y")
		c.Progress.Revise("x", x)
		c.Progress.Revise("y", y)
		return c
	}
	retried := call.Outcome{Err: errDown}
	f.store(outcomes(2, retried, retried))
	f.store(outcomes(1, succeeded, retried))
	if annotations(f.body.Raw())[startedKey] == nil {
		t.Fatal("there are none")
	}
	f.end(outcomes(1, succeeded, succeeded))
	if got, left := annotations(f.body.Raw())[startedKey]; left {
		t.Errorf("got %v", got)
	}
}

// A cycle of the former format has no token. It gets one when a handler ends.
func TestCycleOfTheFormerFormatGetsAToken(t *testing.T) {
	f := newFixture(t)
	f.put("a", storage.Record{Started: date(1), Purpose: cause.Create, Success: true})
	f.change(m{"metadata": m{"annotations": m{startedKey: `{"kopf-cycle-since":"2024-01-02T00:00:00Z"}`}}})
	c := f.cycle(cause.Create, "a", "b", "c")
	c.Progress.Fail("b", errDown)
	f.store(c)
	if kept := f.kept(c); kept == nil || kept.Token != "1" || f.progress("b").Load("b").Cycle != "1" {
		t.Errorf("got %+v", kept)
	}
}

// A storage can return what it holds in memory.
func TestTheStoredCycleIsNotChanged(t *testing.T) {
	f, c := open(t)
	c.Progress.Fail("a", errDown)
	c.Progress.Fail("c", errDown)
	earlier, states := f.Essence(f.body, nil), make([]object.Essence, 1, 2)
	earlier["spec"], states[0] = m{"size": int64(7)}, object.Essence{"spec": m{"size": int64(8)}}
	kept := &storage.Cycle{Token: "7", First: earlier, States: states, At: map[string]int{"a": 0}, Again: []string{"c", "d"}}
	got := c.withEnds(kept, "9", nil)
	if len(got.States) != 2 || got.At["c"] != 1 || !slices.Equal(got.Again, []string{"d"}) {
		t.Errorf("got %+v", got)
	}
	if states[:2][1] != nil || !maps.Equal(kept.At, map[string]int{"a": 0}) || !slices.Equal(kept.Again, []string{"c", "d"}) {
		t.Errorf("it became %+v, %v", kept, states[:2])
	}
}
