package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/storage"
)

// bodyWith returns the object of a resting engine after a change.
func (e restingEngine) bodyWith(t *testing.T, merge m) *object.Body {
	t.Helper()
	cached := e.engine.resources.get(kex.String()).Cached(e.keys[0].NamespacedName)
	return object.NewBody(patch.ApplyMerge(cached.Body().Raw(), merge))
}

// detect returns what has happened to a version of the object.
func (e restingEngine) detect(t *testing.T, body *object.Body) *cycle {
	t.Helper()
	p := e.newPass(e.engine.resources.get(kex.String()), e.keys[0])
	c, err := p.plan(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A handler whose field changes while others are retried does not wait for them.
func TestHandlersOfALaterChangeJoinAnOpenCycle(t *testing.T) {
	e := atRest(t, 1, func(r *registry.Registry) {
		for _, field := range []string{"replicas", "image"} {
			r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID(field), handler.Field("spec", field)))
		}
	})
	body := e.bodyWith(t, m{"spec": m{"replicas": int64(7)}})
	c := e.detect(t, body)
	if got := plan.IDsOf(c.Handlers); !slices.Equal(got, []string{"replicas/spec.replicas", "apply"}) {
		t.Fatalf("got %q", got)
	}
	c.include()
	c.Cycle.Progress.Fail("replicas/spec.replicas", errors.New("never"))
	into := storage.Patch{}
	isOvertaken := func(string) (bool, error) { return false, nil }
	if err := e.engine.records.Store(t.Context(), c.Cycle, body, into, report.Reporter{}, isOvertaken); err != nil {
		t.Fatal(err)
	}
	into.Set(object.Path{"spec", "image"}, "another")
	later := e.detect(t, object.NewBody(patch.ApplyMerge(body.Raw(), into)))
	if got := plan.IDsOf(later.Handlers); !slices.Equal(got, []string{"replicas/spec.replicas", "image/spec.image", "apply"}) {
		t.Errorf("got %q", got)
	}
	if !later.Cycle.Progress.Load("replicas/spec.replicas").Finished() || later.Cycle.Progress.Load("image/spec.image").Finished() {
		t.Error("the handler that has ended must wait for the next cycle, and the other must not")
	}
}

// The watch shows the release of an object later, or never if it is stuck.
func TestBackgroundOfAReleasedObjectIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reason stop.Reason
		e := atRest(t, 1, func(r *registry.Registry) {
			r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, task *handler.Call) error {
				<-task.Stopped()
				reason = task.StopReason()
				return nil
			}), handler.ID("daemon")))
		})
		defer e.engine.supervisor.Stop(t.Context())
		makePass(t, e, e.keys[0])
		s := e.engine.objects.of(e.keys[0])
		b := s.background
		synctest.Wait()
		if b == nil || !b.areDaemonsRunning() {
			t.Fatal("the daemon is not running")
		}
		s.reconciledVersion = ""
		s.writes.SeenGone(true) // as after the last finalizer was removed
		if result, err := e.Reconcile(t.Context(), e.keys[0]); err != nil || result.RequeueAfter != 0 {
			t.Fatal(result, err)
		}
		synctest.Wait()
		if !reason.Has(stop.Deleted) || b.areDaemonsRunning() {
			t.Errorf("got %v, %v", reason, b.areDaemonsRunning())
		}
		if b.addEdit(call.Edit{}) {
			t.Error("edits are still accepted, and their authors would wait forever")
		}
	})
}

// No event may follow that would start another pass.
func TestPassThatWaitsForALateWatchIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := atRest(t, 1)
		e.engine.objects.of(e.keys[0]).writes.NotOlderThan("999999")
		result, err := e.Reconcile(t.Context(), e.keys[0])
		if timeout := e.engine.Settings.Persistence.ConsistencyTimeout; err != nil || result.RequeueAfter != timeout {
			t.Errorf("got %v, %v, want %v", result, err, timeout)
		}
	})
}

// What an event handler wants for an object must not be written to the next one of its name.
func TestEditsForAnEarlierObjectAreDropped(t *testing.T) {
	w := hear(t)
	w.edits = true
	next := w.successor()
	w.show(next)
	w.engine.backlog.Push(w.key, object.WatchEvent{Type: apiwatch.Modified, Snapshot: w.first})
	p := w.newPass(w.engine.resources.get(kex.String()), w.key)
	if p.handleEvents(t.Context(), next); p.object.writes.HasEdits() {
		t.Error("the edit is for the earlier object")
	}
	w.engine.backlog.Push(w.key, object.WatchEvent{Type: apiwatch.Modified, Snapshot: next})
	if p.handleEvents(t.Context(), next); !p.object.writes.HasEdits() {
		t.Error("the edit for the current object is lost")
	}
}

// An interrupted cycle whose change was reverted leaves records that no cycle will remove.
func TestStaleRecordsAreRemoved(t *testing.T) {
	for purpose, want := range map[cause.Reason]bool{cause.Create: true, cause.Delete: true, cause.Resume: false} {
		e := atRest(t, 1)
		c := e.detect(t, e.bodyWith(t, m{"metadata": m{"annotations": m{
			"kopf.zalando.org/remove": `{"started":"2024-02-14T16:58:25.396364+00:00","purpose":"` + string(purpose) + `"}`,
		}}}))
		if !c.NothingToDo() {
			t.Fatalf("%s: there is something to do", purpose)
		}
		if got := c.DecideAtRest(plan.Circumstances{Handlers: &plan.Handlers{}}).StaleRecords != nil; got != want {
			t.Errorf("%s: got %v", purpose, got)
		}
	}
}
