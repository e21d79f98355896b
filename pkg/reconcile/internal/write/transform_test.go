package write

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// revised adds an edit with a failing transformation, for a handler whose attempt then has the
// outcome.
func (f *fixture) revised(id string, o call.Outcome) {
	p := &patch.Patch{}
	p.Apply(func(*unstructured.Unstructured) error { return errors.New("no room") })
	f.state.Add(call.Edit{ID: id, Patch: p, Done: func() { f.done[id]++ }, Revise: func(err error) call.Outcome {
		o.Called = true
		if o.Err != nil {
			o.Err = err
		}
		return o
	}})
}

func TestAFailedTransformationIsRetried(t *testing.T) {
	f := newFixture(t, m{})
	c := f.finished(cause.Create, "a", "b")
	f.revised("a", call.Outcome{Err: errors.New("x"), Delay: time.Minute})
	outcome := f.write(Update{Cycle: c})
	f.expectSent("PATCH")
	stored := f.storedRecord("a")
	f.expect("ended", outcome.Ended, false)
	f.expect("unreported successes", c.Unreported, []string{"b"})
	f.expect("finished", f.done["a"], 1)
	if stored.Finished() || stored.Retries != 1 || time.Until(stored.Delayed) < 50*time.Second || stored.Message != "the change of the object failed: no room" {
		t.Errorf("got %+v", stored)
	}
	if len(f.events) != 1 || !strings.HasPrefix(f.events[0], "HandlerRetrying: Handler a failed and will be retried: the change of the object failed: no room") {
		t.Errorf("got %q", f.events)
	}
}

func TestAFailedTransformationCanEndTheHandler(t *testing.T) {
	f := newFixture(t, m{})
	c := f.finished(cause.Create, "a", "b")
	f.revised("a", call.Outcome{Final: true, Err: errors.New("x")})
	f.expect("ended", f.write(Update{Cycle: c}).Ended, true)
	succeeded, failed := c.Progress.Counts()
	f.expect("counts", []int{succeeded, failed}, []int{1, 1})
}

func TestAFailedTransformationCanBeIgnored(t *testing.T) {
	f := newFixture(t, m{})
	c := f.finished(cause.Create, "a")
	f.revised("a", call.Outcome{Final: true, Ignored: errors.New("x")})
	f.expect("ended", f.write(Update{Cycle: c}).Ended, true)
	succeeded, failed := c.Progress.Counts()
	f.expect("counts", []int{succeeded, failed}, []int{1, 0})
}

// A sub-handler is called by its parents: they must not count as finished.
func TestAFailedTransformationOfASubhandlerReopensItsParents(t *testing.T) {
	f := newFixture(t, m{})
	c := f.finished(cause.Create, "a", "a/b", "a/b/c", "other")
	c.Progress.Load("a").Subrefs = []string{"a/b", "a/b/c"}
	c.Progress.Load("a/b").Subrefs = []string{"a/b/c"}
	f.revised("a/b/c", call.Outcome{Err: errors.New("x"), Delay: time.Minute})
	f.expect("ended", f.write(Update{Cycle: c}).Ended, false)
	for id, finished := range map[string]bool{"a": false, "a/b": false, "a/b/c": false, "other": true} {
		if got := f.storedRecord(id); got.Finished() != finished || !finished && time.Until(got.Delayed) < 50*time.Second {
			t.Errorf("%s: got %+v", id, got)
		}
	}
	f.expect("unreported successes", c.Unreported, []string{"other"})
}

// The records of calls outside of a cycle follow the outcome of the transformation, too.
func TestAFailedTransformationOfACallOutsideOfACycleIsRetried(t *testing.T) {
	f := newFixture(t, m{})
	calls := f.finished(cause.Update, "child")
	f.revised("child", call.Outcome{Err: errors.New("x"), Delay: time.Minute})
	f.write(Update{Calls: calling(calls, "child")})
	child := calls.Progress.Load("child")
	f.expect("finished, attempts", []any{child.Finished(), child.Retries}, []any{false, 1})
	f.expect("reported", len(f.events) == 1 && strings.HasPrefix(f.events[0], "HandlerRetrying: "), true)
}

// An event handler has no record that could say when it is called again.
func TestAFailedTransformationWithoutARecordIsReported(t *testing.T) {
	f := newFixture(t, m{})
	f.revised("event", call.Outcome{Err: errors.New("x"), Delay: time.Minute})
	f.write(Update{})
	f.expect("reported", len(f.events) == 1 && strings.HasPrefix(f.events[0], "WriteRejected: Handler event failed"), true)
}
