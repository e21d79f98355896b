package reconcile

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/kopf-go/kopf/internal/handlertest"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

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
	p := w.newPass(w.engine.resources.get(kex.String()), w.key, &w.term)
	if err := p.handleEvents(t.Context(), next); err != nil || p.object.writes.HasEdits() {
		t.Error("the edit is for the earlier object")
	}
	w.engine.backlog.Push(w.key, object.WatchEvent{Type: apiwatch.Modified, Snapshot: next})
	if err := p.handleEvents(t.Context(), next); err != nil || !p.object.writes.HasEdits() {
		t.Error("the edit for the current object is lost")
	}
}
