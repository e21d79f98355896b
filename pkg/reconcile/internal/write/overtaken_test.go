package write

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Two leaders overlap, and each calls one handler at a time: the record that one of them
// stores for a waiting handler must not replace what the handler returned to the other.
func TestARecordWithoutAnAttemptDoesNotReplaceAnOutcome(t *testing.T) {
	f := newFixture(t, m{})
	c := f.cycle(cause.Create, "a", "b")
	succeed(c, "a")
	f.edit("a", set("ours", "spec", "a"))
	f.faults = []fault{{before: func() {
		f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
			waiting := storage.Record{Started: time.Now(), Purpose: cause.Create}
			return records.Storages.Progress.Store(t.Context(), body, into, "a", &waiting)
		})
	}}}
	f.write(Update{Cycle: c})
	f.expect("record", f.storedRecord("a").Success, true)
	f.expect("edit", f.field("spec", "a"), "ours")
	f.expect("finished", f.done["a"], 1)
	f.expect("progress of no handler", c.Progress.Has(""), false)
}

// Two leaders overlap: one has called the sub-handlers of a handler that waits in the other one. Its record keeps them, so
// that their records are removed at the end of the cycle.
func TestARecordKeepsTheSubhandlersOfAnotherOperator(t *testing.T) {
	f := newFixture(t, m{})
	c := f.cycle(cause.Create, "parent", "other")
	succeed(c, "other")
	f.faults = []fault{{before: func() {
		f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
			parent := storage.Record{Started: time.Now(), Purpose: cause.Create, Subrefs: []string{"parent/x", "parent/y"}}
			x := storage.Record{Started: time.Now(), Purpose: cause.Create, Retries: 1, Success: true}
			return errors.Join(
				records.Storages.Progress.Store(t.Context(), body, into, "parent", &parent),
				records.Storages.Progress.Store(t.Context(), body, into, "parent/x", &x),
			)
		})
	}}}
	f.write(Update{Cycle: c})
	f.expect("outcome", f.storedRecord("other").Success, true)
	f.expect("sub-handlers", strings.Join(f.storedRecord("parent").Subrefs, " "), "parent/x parent/y")
}

func TestAnotherInstanceIsReportedOnce(t *testing.T) {
	f := newFixture(t, m{})
	var lines []string
	f.report.Log = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	for retries := 1; retries < 3; retries++ {
		f.refresh(f.cached())
		c := f.cycle(cause.Create, "a", "b")
		succeed(c, "a")
		f.faults = []fault{{before: func() {
			f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
				theirs := storage.Record{Started: time.Now(), Purpose: cause.Create, Retries: retries, Message: "theirs"}
				return records.Storages.Progress.Store(t.Context(), body, into, "a", &theirs)
			})
		}}}
		f.write(Update{Cycle: c})
		f.expect("record", f.storedRecord("a").Message, "theirs")
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "Another instance of this operator handles the same objects at the same time") {
		t.Errorf("got %q", lines)
	}
}

// A handler of children writes to the object in the middle of its call. What others have done until
// then counts for the next write of the pass, too, although that has no conflict.
func TestGuard10AllWritesOfAPassYieldToOthers(t *testing.T) {
	others := map[string]struct {
		do     func(f *fixture, records record.Keeper, body *object.Body, into storage.Patch) error
		record string // of a
		stored bool   // the record of b
	}{
		"a record is overtaken": {func(_ *fixture, records record.Keeper, body *object.Body, into storage.Patch) error {
			failed := storage.Record{Started: time.Now(), Purpose: cause.Create, Failure: true, Message: "theirs"}
			return records.Storages.Progress.Store(t.Context(), body, into, "a", &failed)
		}, "theirs", true},
		"the cycle has ended": {func(f *fixture, records record.Keeper, body *object.Body, into storage.Patch) error {
			ended := &record.Cycle{Reason: cause.Create, New: records.Essence(body, nil), Progress: f.cycle(cause.Create).Progress}
			return records.End(t.Context(), ended, body, into, f.report)
		}, "", false},
	}
	for name, other := range others {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			c := f.cycle(cause.Create, "a", "b", "c")
			succeed(c, "a", "b")
			f.faults = []fault{{before: func() {
				f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
					return other.do(f, records, body, into)
				})
			}}}
			f.expect("changed by others", f.write(Update{Decision: plan.Decision{AddFinalizer: true}}).ChangedByOthers, true)
			f.edit("a", set("ours", "spec", "a"))
			f.write(Update{Cycle: c})
			f.expect("edit", f.field("spec", "a"), nil)
			f.expect("finished", f.done, map[string]int{"a": 1})
			if stored := f.storedRecord("a"); stored != nil || other.record != "" {
				f.expect("record", stored.Message, other.record)
			}
			f.expect("other record", f.storedRecord("b") != nil, other.stored)
		})
	}
}

// An operator cannot write what a handler has returned, and is paused. Meanwhile, another one ends
// the cycle, and the base is the same again, because the change was taken back. When the same change
// comes once more, the handler has not seen it yet.
func TestOutcomesDoNotOutliveTheCycleIfItsBaseComesBack(t *testing.T) {
	others := map[string]struct {
		do   func(records record.Keeper, c *record.Cycle, body *object.Body, into storage.Patch) error
		want bool
	}{
		"the cycle has ended": {func(records record.Keeper, c *record.Cycle, body *object.Body, into storage.Patch) error {
			return records.Purge(t.Context(), c, body, into)
		}, false},
		"the object has changed": {func(_ record.Keeper, _ *record.Cycle, _ *object.Body, into storage.Patch) error {
			into.Set(object.Path{"spec", "theirs"}, "theirs")
			return nil
		}, true},
	}
	for name, other := range others {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			f.write(Update{Cycle: f.cycle(cause.Resume, "rerun")}) // the other handlers have no record yet
			f.refresh(f.cached())
			c := f.cycle(cause.Update, "rerun", "a")
			succeed(c, "a")
			f.edit("a", set("ours", "spec", "a"))
			f.faults = []fault{{err: errors.New("unavailable")}}
			_ = f.writeFails(Update{Cycle: c})
			f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
				return other.do(records, f.cycle(cause.Update, "rerun"), body, into)
			})
			f.flush()
			f.expect("record", f.storedRecord("a") != nil, other.want)
			f.expect("edit", f.field("spec", "a") != nil, other.want)
		})
	}
}

// A handler ends at the base, because the change was taken back meanwhile; another one ends at a later
// state. So the base stays, and a new cycle begins, in which the former is behind. That was written,
// but the response is lost: writing it again must not count the former as ended in the new cycle.
func TestAnEndWithoutAResponseIsNotRepeatedIfTheBaseStays(t *testing.T) {
	f := newFixture(t, m{})
	ids := []string{"x", "y"}
	next := func(size int64) *record.Cycle {
		f.change(m{"spec": m{"size": size}})
		f.refresh(f.cached())
		c := f.cycle(cause.Update, ids...)
		c.Declared, c.IsDue = ids, func(_ string, before, after object.Essence) bool { return !object.Equal(before, after) }
		return c
	}
	f.write(Update{Cycle: f.finished(cause.Create, ids...)})
	both := next(2)
	both.Progress.Load("x").Retries, both.Progress.Load("y").Retries = 1, 1
	f.write(Update{Cycle: both})
	first := next(1)
	first.Progress.Revise("x", call.Outcome{Final: true})
	f.write(Update{Cycle: first})
	last := next(3)
	last.Progress.Revise("y", call.Outcome{Final: true})
	f.faults = []fault{{lost: errors.New("timeout")}}
	_ = f.writeFails(Update{Cycle: last})
	f.flush()
	f.expect("base", f.storedBase()["spec"], m{"size": 1})
	f.expect("record of x", f.storedRecord("x") != nil, false)
	f.expect("success of y", f.storedRecord("y").Success, true)
}

// Two leaders overlap. One of them calls a handler that registers sub-handlers for the first time,
// and the other one ends the cycle meanwhile. Nothing would find the records of the sub-handlers
// without that of the parent.
func TestRecordsOfSubHandlersEndWithThatOfTheirParent(t *testing.T) {
	ids, subs := []string{"a", "parent"}, []string{"parent/x", "parent/y/z"}
	tests := map[string]struct {
		stored []string // before the call of the parent
		others func(records record.Keeper, c *record.Cycle, body *object.Body, into storage.Patch) error
		want   bool
	}{
		"the cycle has ended": {ids, func(records record.Keeper, c *record.Cycle, body *object.Body, into storage.Patch) error {
			return records.Purge(t.Context(), c, body, into)
		}, false},
		"the object has changed": {ids, func(_ record.Keeper, _ *record.Cycle, _ *object.Body, into storage.Patch) error {
			into.Set(object.Path{"spec", "theirs"}, "theirs")
			return nil
		}, true},
		"the object has changed during the first attempt": {nil, func(_ record.Keeper, _ *record.Cycle, _ *object.Body, into storage.Patch) error {
			into.Set(object.Path{"spec", "theirs"}, "theirs")
			return nil
		}, true},
		"earlier records are gone": {append(ids, subs...), func(records record.Keeper, _ *record.Cycle, body *object.Body, into storage.Patch) error {
			for _, id := range subs {
				if err := records.Storages.Progress.Purge(t.Context(), body, into, id); err != nil {
					return err
				}
			}
			return nil
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			if test.stored != nil {
				f.write(Update{Cycle: f.cycle(cause.Update, test.stored...)})
				f.refresh(f.cached())
			}
			c := f.cycle(cause.Update, append(ids, subs...)...)
			c.Declared = ids
			succeed(c, "parent/x")
			f.edit("parent/x", set("x", "spec", "x"))
			f.faults = []fault{{before: func() {
				f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
					return test.others(records, f.cycle(cause.Update, ids...), body, into)
				})
			}}}
			f.write(Update{Cycle: c})
			f.expect("record", f.storedRecord("parent/x") != nil, test.want)
			f.expect("edit", f.field("spec", "x") != nil, test.want)
		})
	}
}

func TestHasAdvanced(t *testing.T) {
	of := func(purpose cause.Reason, retries int, finished bool) *storage.Record {
		return &storage.Record{Purpose: purpose, Retries: retries, Success: finished}
	}
	create, update := cause.Create, cause.Update
	ofCycle := func(token string) *storage.Record {
		return &storage.Record{Purpose: update, Retries: 1, Success: true, Cycle: token}
	}
	saying := func(r *storage.Record, message string) *storage.Record {
		r.Message = message
		return r
	}
	const earlier, open = "1", "2"
	tests := map[string]struct {
		theirs, before *storage.Record
		want           bool
	}{
		"nothing is stored":                         {nil, nil, false},
		"the record was removed":                    {nil, of(create, 1, false), true},
		"a handler waits for its first attempt":     {of(create, 0, false), nil, false},
		"a first attempt":                           {of(create, 1, false), nil, true},
		"a skipped handler":                         {of(create, 0, true), nil, true},
		"the same":                                  {of(create, 1, false), of(create, 1, false), false},
		"another attempt":                           {of(create, 2, false), of(create, 1, false), true},
		"an end":                                    {of(create, 1, true), of(create, 1, false), true},
		"the same end":                              {of(create, 1, true), of(create, 1, true), false},
		"the same attempt, with another message":    {saying(of(create, 1, false), "x"), of(create, 1, false), false},
		"the same end, with another message":        {saying(of(create, 1, true), "x"), of(create, 1, true), false},
		"an attempt for another purpose":            {of(update, 1, false), of(create, 3, false), true},
		"a handler waits for another purpose":       {of(update, 0, false), of(create, 3, true), false},
		"fewer attempts, stored by a late operator": {of(create, 1, false), of(create, 2, false), false},
		// Records in the status can be left over from an earlier cycle, and a write without an answer can remove them late.
		"the record of an earlier cycle was removed": {nil, ofCycle(earlier), false},
		"the same record of an earlier cycle":        {ofCycle(earlier), ofCycle(earlier), false},
		"an end after that of an earlier cycle":      {ofCycle(open), ofCycle(earlier), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			progress := call.NewProgress(func(string) *storage.Record { return test.before })
			state := progress.Load("a")
			progress.MarkStale(open)
			if got := hasAdvanced(test.theirs, state); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
