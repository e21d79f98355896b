package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// withDaemon returns an engine at rest with one object, whose daemon is running, and where the
// daemon notes why it was stopped, and then takes some time to end. It belongs in a bubble of virtual time.
func withDaemon(t *testing.T, ending time.Duration) (e restingEngine, s *objectState, reason *stop.Reason) {
	t.Helper()
	reason = new(stop.Reason)
	e = atRest(t, 1, func(r *registry.Registry) {
		r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, task *handler.Call) error {
			<-task.Stopped()
			*reason = task.StopReason()
			time.Sleep(ending)
			return nil
		}), handler.ID("daemon")))
	})
	t.Cleanup(func() { e.engine.supervisor.Stop(context.Background()) })
	makePass(t, e, e.keys[0])
	synctest.Wait()
	s = e.engine.objects.of(e.keys[0])
	if s.background == nil || !s.background.areDaemonsRunning() {
		t.Fatal("the daemon is not running")
	}
	return e, s, reason
}

// The daemon must not take the next object for its own, and the author of an edit that nobody
// writes must not wait forever.
func TestDaemonsAndEditsEndWithTheirObject(t *testing.T) {
	tests := map[string]struct {
		end    func(e restingEngine, s *objectState)
		reason stop.Reason
	}{
		"another object has its name": {func(_ restingEngine, s *objectState) { s.resetFor("u-2") }, stop.Deleted},
		"it is gone":                  {func(_ restingEngine, s *objectState) { s.markGone() }, stop.Deleted},
		"it is no longer watched":     {func(e restingEngine, _ *objectState) { e.engine.objects.remove(e.keys[0], stop.Mismatch) }, stop.Mismatch},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, s, reason := withDaemon(t, 0)
				b, waiting, taken := s.background, false, false
				b.addEdit(call.Edit{Done: func() { waiting = true }})
				s.writes.Add(call.Edit{Done: func() { taken = true }})
				test.end(e, s)
				synctest.Wait()
				if !reason.Has(test.reason) || b.areDaemonsRunning() {
					t.Errorf("the daemon runs, or was stopped for another reason: %v", *reason)
				}
				if !waiting || !taken {
					t.Errorf("edits still wait: in the background %t, for a write %t", !waiting, !taken)
				}
			})
		})
	}
}

// The next object of the name has not changed yet.
func TestForgottenObjectsHaveNoLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all objects
		before := all.changes.see(keyOf("a"), "u-1", 1)
		time.Sleep(time.Minute)
		all.remove(keyOf("a"), stop.Deleted)
		if all.changes.see(keyOf("a"), "u-1", 1).Equal(before) {
			t.Error("the last change is remembered")
		}
	})
}

// Whoever forgets the object of a resource waits until its daemons have ended.
func TestForgottenObjectsReturnTheirDaemons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := withDaemon(t, 0)
		if b := s.background; e.engine.objects.remove(e.keys[0], stop.Mismatch) != b || e.engine.objects.has(e.keys[0]) {
			t.Error("the daemons are lost, or the object is still known")
		}
		if b := e.engine.objects.remove(e.keys[0], stop.Mismatch); b != nil {
			t.Errorf("got %v for an object that is not known", b)
		}
	})
}

// The object has not changed, but its daemon or timer needs a pass.
func TestBackgroundEndsTheRestOfAnObject(t *testing.T) {
	tests := map[string]struct {
		happens func(s *objectState)
		want    bool
	}{
		"nothing happens":           {func(*objectState) {}, true},
		"an edit must be written":   {func(s *objectState) { s.background.addEdit(call.Edit{}) }, false},
		"a daemon asks for a pass":  {func(s *objectState) { s.background.Requeue() }, false},
		"the last pass was earlier": {func(s *objectState) { s.reconciledVersion = "1" }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, s, _ := withDaemon(t, 0)
				version := s.reconciledVersion
				test.happens(s)
				if got := s.isReconciledAt(version); got != test.want {
					t.Errorf("at rest: %t", got)
				}
			})
		})
	}
}

// What is left are the end of the object, and what keeps it from being forgotten too early.
func TestGoneObjectKeepsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, _ := withDaemon(t, 0)
		s.handled, s.failures, s.deleteEventHandled = true, 3, true
		s.markGone()
		if s.background != nil || s.reconciledVersion != "" || s.handled || s.failures != 0 || !s.deleteEventHandled || !s.writes.Gone() {
			t.Errorf("got %+v", s.lifetime)
		}
	})
}
