package write

import (
	"errors"
	"net/http"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

// calling returns calls outside of a cycle, with the records that the handlers have there.
func calling(c *record.Cycle, ids ...string) *record.Calls {
	return &record.Calls{Progress: c.Progress, Records: func() map[string]*storage.Record {
		records := map[string]*storage.Record{}
		for _, id := range ids {
			records[id] = &storage.Record{Success: c.Progress.Load(id).Success, Failure: c.Progress.Load(id).Failure}
		}
		return records
	}}
}

// A handler that is called outside of a cycle fails for its own edit.
func TestARejectedEditFailsACallOutsideOfACycle(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = rejecting(http.StatusUnprocessableEntity, "spec", "bad")
	f.edit("child", set("x", "spec", "bad"))
	calls, cycle := f.finished(cause.Update, "child"), f.finished(cause.Create, "fn")
	outcome := f.write(Update{Cycle: cycle, Calls: calling(calls, "child")})
	f.expect("ended", outcome.Ended, true)
	f.expect("failures", []bool{calls.Progress.Load("child").Failure, cycle.Progress.Load("fn").Failure}, []bool{true, false})
	f.expect("record", f.storedRecord("child").Failure, true)
}

// The same handler can be in both: then it is the cycle that its edit is a part of.
func TestARejectedEditFailsTheCycle(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = rejecting(http.StatusUnprocessableEntity, "spec", "bad")
	f.edit("fn", set("x", "spec", "bad"))
	calls, cycle := f.finished(cause.Update, "fn"), f.finished(cause.Create, "fn")
	f.write(Update{Cycle: cycle, Calls: calling(calls)})
	f.expect("failures", []bool{calls.Progress.Load("fn").Failure, cycle.Progress.Load("fn").Failure}, []bool{false, true})
}

func TestNothingIsWrittenIfTheRecordsOfCallsCannotBe(t *testing.T) {
	f := newFixture(t, m{})
	working := f.writer.Records.Storages.Progress
	f.writer.Records.Storages.Progress = failingProgress{Progress: working, store: errStorage}
	f.edit("child", set("x", "spec", "color"))
	err := f.writeFails(Update{Calls: calling(f.finished(cause.Update, "child"), "child")})
	f.expect("error", errors.Is(err, errStorage), true)
	f.expectSent("")
	f.writer.Records.Storages.Progress = working
	f.flush()
	f.expect("color, done", []any{f.field("spec", "color"), f.done["child"]}, []any{"x", 1})
}
