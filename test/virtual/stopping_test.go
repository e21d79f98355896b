package virtual

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

// The operator stops, and waits for a daemon. A handler of children that is due is not called anymore: the object waits,
// too, instead of going through one pass after the other.
func TestAHandlerOfChildrenThatIsDueDoesNotKeepAStoppingOperatorBusy(t *testing.T) {
	const farewell, most = 5 * time.Second, 100
	looks, stopping := 0, false
	withOperator(t, func(r *kopf.Registry) {
		r.Daemon(examples, func(_ context.Context, task *kopf.Task) error {
			<-task.Stopped()
			time.Sleep(farewell)
			return nil
		}, kopf.ID("daemon"))
		r.OnChild(examples, kopf.Resource("v1", "configmaps"), func(context.Context, *kopf.ChildChange) error {
			return kopf.Temporary(errors.New("not yet"), time.Second)
		}, kopf.ID("look"), kopf.When(func(kopf.Arguments) bool { // a filter is evaluated in each pass
			if looks++; stopping && looks > most {
				time.Sleep(time.Minute) // otherwise, no time would pass
			}
			return true
		}))
	}, func(t *testing.T, h *kopftest.Harness) {
		one, child := newExample(), newTheme()
		h.Create(one)
		child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(one, one.GroupVersionKind())})
		h.Create(child)
		h.Advance(time.Minute)
		began := time.Now()
		looks, stopping = 0, true
		h.Stop()
		if took := time.Since(began); took > farewell || looks > most {
			t.Errorf("it took %s and %d passes to stop", took, looks)
		}
	})
}

// silentStorage does not answer while it is silent.
type silentStorage struct {
	storage.DiffBase
	isSilent *bool
}

func (s silentStorage) Fetch(ctx context.Context, body *object.Body) (object.Essence, error) {
	if *s.isSilent {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return s.DiffBase.Fetch(ctx, body)
}

// An operator that begins to work reads what is stored about all objects, to know how far a rollout is.
func TestShutdownDoesNotWaitForAStorageThatDoesNotAnswer(t *testing.T) {
	isSilent := false
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("create"), kopf.Revision("1"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Minute)
		h.Stop()
		isSilent = true
		h.Start()
		h.Advance(time.Minute)
		began := time.Now()
		h.Stop()
		if took := time.Since(began); took >= settings.DefaultGracePeriod {
			t.Errorf("it took %s to stop", took)
		}
		isSilent = false
		h.Start()
	}, kopftest.Settings(func(s *kopf.Settings) {
		s.Persistence.DiffBase = silentStorage{storage.AnnotationsDiffBase{}, &isSilent}
	}))
}

// A handler of children waits for the list of those that exist. It has done nothing yet, so a shutdown does not wait for it, and what
// other handlers have done is recorded.
func TestShutdownDoesNotWaitForTheListOfChildren(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnUpdate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("update"))
		r.Ensure(examples, oneOrTwo, kopf.ID("children"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		h.Stop()
		down := apierrors.NewServiceUnavailable("down")
		lists := h.Fail(kopftest.Requests{Verb: "list", Resource: "configmaps"}, 0, down)
		watches := h.Fail(kopftest.Requests{Verb: "watch", Resource: "configmaps"}, 0, down)
		h.Patch(one, `{"spec": {"size": 0}}`)
		h.Start()
		h.Advance(time.Second)
		began := time.Now()
		h.Stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s to stop", took)
		}
		lists.End()
		watches.End()
		h.Start()
		h.Advance(time.Minute)
		if calls := h.Calls("update"); len(calls) != 1 || h.Exists(themeNamed("two")) {
			t.Errorf("got the calls %v, and the children are not what the handler wants", calls)
		}
	})
}
