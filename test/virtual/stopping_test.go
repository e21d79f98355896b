package virtual

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
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
