package reconcile

import (
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/converge"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
	"github.com/kopf-go/kopf/pkg/storage"
)

// ending is a trigger that knows whether it was stopped.
type ending struct {
	*triggers.Flag
	stopped bool
}

func (e *ending) Stop() { e.stopped = true }

// withTrigger gives the object a trigger.
func withTrigger(t *testing.T, e restingEngine, key object.Key) *ending {
	t.Helper()
	d, err := handler.Create(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("triggered"))
	if err != nil {
		t.Fatal(err)
	}
	made := &ending{Flag: triggers.NewFlag(d, func() {})}
	err = e.engine.objects.triggers.Sync(triggers.Object{
		Key: key, UID: e.engine.objects.of(key).writes.UID(), Handlers: registry.Handlers{d},
		New:    func(*handler.Declaration, bool) triggers.Trigger { return made },
		Record: func(string) (*storage.Record, error) { return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// withChildren lets the object have a handler that makes children, and returns the number of
// owners of children that the operator knows.
func withChildren(t *testing.T, e restingEngine, key object.Key) (owners func() int) {
	t.Helper()
	if e.engine.converger == nil {
		e.engine.converger = converge.New(converge.Config{Manager: "test"})
	}
	parent := converge.Parent{Key: key, UID: e.engine.objects.of(key).writes.UID()}
	call := converge.Call{Owner: converge.Owner{Operator: "test", Parent: parent, Handler: "apply"}, Options: &convergence.Options{}, Log: logr.Discard()}
	_ = e.engine.converger.Converge(t.Context(), call, nil) // it has no children
	return func() int {
		return reflect.ValueOf(e.engine.converger).Elem().FieldByName("store").Elem().FieldByName("states").Len()
	}
}

// The watch shows the release of an object later, or never if it is stuck.
func TestTriggersOfAReleasedObjectAreStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := atRest(t, 1)
		makePass(t, e, e.keys[0])
		trigger, owners := withTrigger(t, e, e.keys[0]), withChildren(t, e, e.keys[0])
		if owners() != 1 {
			t.Fatalf("got %d owners", owners())
		}
		s := e.engine.objects.of(e.keys[0])
		s.reconciledVersion = ""
		s.writes.SeenGone(true)
		if result, err := e.Reconcile(t.Context(), e.keys[0]); err != nil || result.RequeueAfter != 0 {
			t.Fatal(result, err)
		}
		synctest.Wait()
		if !trigger.stopped {
			t.Error("the trigger of the object is not stopped")
		}
		if owners() != 0 {
			t.Error("the object is still an owner of children")
		}
	})
}

// Others have deleted the object, so no write has told.
func TestDeletedObjectIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := atRest(t, 2)
		for _, key := range e.keys {
			makePass(t, e, key)
		}
		gone := e.keys[0]
		trigger, owners := withTrigger(t, e, gone), withChildren(t, e, gone)
		if owners() != 1 {
			t.Fatalf("got %d owners", owners())
		}
		e.engine.revisions.Begin(revision.Handler{Resource: gone.Resource, ID: "apply", Revision: "2"}, map[object.Key]revision.State{gone: revision.Done, e.keys[1]: revision.Done})
		for _, cached := range e.engine.resources.get(kex.String()).Objects() {
			if cached.GetName() == gone.Name {
				if err := e.cache.Delete(cached); err != nil {
					t.Fatal(err)
				}
			}
		}
		if result, err := e.Reconcile(t.Context(), gone); err != nil || result.RequeueAfter != 0 {
			t.Fatal(result, err)
		}
		synctest.Wait()
		if !trigger.stopped {
			t.Error("the trigger of the object is not stopped")
		}
		if owners() != 0 {
			t.Error("the object is still an owner of children")
		}
		if rollouts := e.engine.revisions.Numbers(); len(rollouts) != 1 || rollouts[0].Done != 1 {
			t.Errorf("got the rollouts %+v", rollouts)
		}
	})
}
