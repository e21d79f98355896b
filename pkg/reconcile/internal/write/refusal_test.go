package write

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
)

var errDenied = answer(http.StatusUnprocessableEntity)

// denied makes an object that is being deleted, and whose writes the server rejects.
func denied(t *testing.T) *fixture {
	f := newFixture(t, deleting(ours, theirs))
	f.rejects = func(m) error { return errDenied }
	return f
}

// logged returns the lines that the session logs from now on.
func (f *fixture) logged() *[]string {
	lines := &[]string{}
	f.report.Log = funcr.New(func(_, line string) { *lines = append(*lines, line) }, funcr.Options{})
	return lines
}

// A policy can be corrected: nothing is dropped for a minute, no matter how often the write is tried.
func TestNothingIsDroppedBeforeADenialLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := denied(t)
		f.edit("a", set("x", "spec", "a"))
		u := Update{Cycle: f.finished(cause.Delete, "a"), Decision: plan.Decision{RemoveFinalizer: true}}
		for range 2 {
			_ = f.writeFails(u)
			f.expectSent("PATCH, DRYRUN")
			time.Sleep(refusalPatience / 2)
		}
		f.expect("finished", f.done["a"], 0)
		_ = f.writeFails(u)
		f.expect("finished", f.done["a"], 1)
	})
}

// What others need goes last: the edits first, and then the records, if only they hold the object.
func TestWhatIsDroppedFromADeniedDeletion(t *testing.T) {
	const (
		edits    = "What handlers have written or returned cannot be stored"
		progress = "The progress of the deletion handlers cannot be stored"
		end      = "The end of the deletion handlers cannot be stored"
	)
	removing := plan.Decision{RemoveFinalizer: true}
	editing := func(f *fixture) { f.edit("a", set("x", "spec", "a")) }
	tests := map[string]struct {
		update   func(f *fixture) Update
		edits    func(f *fixture)
		sent     string
		unstored bool // the attempts count in memory, so the write does not fail
		logged   []string
	}{
		"edits, and the end of the handlers": {
			func(f *fixture) Update { return Update{Cycle: f.finished(cause.Delete, "a"), Decision: removing} }, editing,
			"PATCH, DRYRUN, PATCH, DRYRUN, PATCH, DRYRUN", false,
			[]string{progress, edits},
		},
		"no edits": {
			func(f *fixture) Update { return Update{Cycle: f.finished(cause.Delete, "a"), Decision: removing} }, func(*fixture) {},
			"PATCH, DRYRUN, PATCH, DRYRUN", false,
			[]string{progress},
		},
		"conditions": {
			func(f *fixture) Update {
				c := f.finished(cause.Delete, "a")
				return Update{Cycle: c, Decision: plan.Decision{RemoveFinalizer: true, Conditions: f.saying(c).Conditions}}
			}, func(*fixture) {},
			"PATCH, DRYRUN, PATCH, DRYRUN, PATCH, DRYRUN", false,
			[]string{progress, edits},
		},
		"edits, but not the progress of other handlers": {
			func(f *fixture) Update {
				c := f.cycle(cause.Delete, "a", "b")
				succeed(c, "a")
				return Update{Cycle: c, Decision: removing}
			}, editing,
			"PATCH, DRYRUN, PATCH, DRYRUN", true,
			[]string{progress, edits},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := denied(t)
				lines := f.logged()
				test.edits(f)
				u := test.update(f)
				_, _ = f.Write(t.Context(), u)
				time.Sleep(refusalPatience)
				f.sent()
				_, err := f.Write(t.Context(), u)
				f.expect("denied", errors.Is(err, errDenied), !test.unstored)
				f.expectSent(test.sent)
				f.expect("edits", f.state.HasEdits(), false)
				f.expect("progress in memory", f.state.Unstored()["a"].Success, true)
				_, _ = f.Write(t.Context(), u)
				if len(*lines) != len(test.logged) {
					t.Fatalf("got %q", *lines)
				}
				for i, message := range test.logged {
					f.expect(message, strings.Contains((*lines)[i], message), true)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f := denied(t)
		lines := f.logged()
		_ = f.writeFails(Update{Decision: removing})
		time.Sleep(refusalPatience)
		f.flush()
		f.expect("lines", len(*lines) == 2 && strings.Contains((*lines)[0], end), true)
	})
}

func TestADenialHoldsOnlyADeletionForAMinute(t *testing.T) {
	tests := map[string]struct{ before, after m }{
		"the deletion comes later":                     {m{"finalizers": []any{ours}}, deleting(ours, theirs)},
		"the object comes back, as in another history": {deleting(ours, theirs), m{"deletionTimestamp": nil}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, test.before)
				f.rejects = func(m) error { return errDenied }
				f.edit("a", set("x", "spec", "a"))
				_ = f.writeFails(Update{Decision: plan.Decision{Annotations: map[string]string{"example.com/honored": "1"}}})
				time.Sleep(refusalPatience)
				f.change(m{"metadata": test.after})
				_ = f.retry()
				f.expect("finished", f.done["a"], 0)
			})
		})
	}
}

// An update that waits for an answer is written before the handlers need its outcomes.
func TestOnlyOutcomesInMemoryAreUnstored(t *testing.T) {
	f := newFixture(t, m{})
	f.expect("without an update", len(f.state.Unstored()), 0)
	f.state.Keep(Update{Cycle: f.finished(cause.Create, "a")})
	f.expect("with an update", len(f.state.Unstored()), 0)
}

// A storage that does not work holds a deletion no longer than a denial.
func TestAStorageThatFailsHoldsNoDeletion(t *testing.T) {
	for name, withConditions := range map[string]bool{"with conditions": true, "without conditions": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, deleting(ours, theirs))
				f.writer.Records.Storages.Progress = failingProgress{Progress: f.writer.Records.Storages.Progress, purge: errStorage}
				c := f.finished(cause.Delete, "a")
				u := Update{Cycle: c, Decision: plan.Decision{RemoveFinalizer: true}}
				if withConditions {
					u.Decision.Conditions = f.saying(c).Conditions
				}
				f.expect("failed", errors.Is(f.writeFails(u), errStorage), true)
				f.expectSent("")
				time.Sleep(refusalPatience)
				f.write(u)
				f.expect("finalizers", f.field("metadata", "finalizers"), []any{theirs})
			})
		})
	}
}
