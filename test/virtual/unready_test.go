package virtual

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/condition"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// judged is an object with conditions, and children of a function that fails on demand.
type judged struct {
	*kopftest.Harness
	t    *testing.T
	fail error // of the function
}

// withConditions runs a test with an object whose children are those of a function.
func withConditions(t *testing.T, children func(context.Context, *kopf.Change) ([]client.Object, error), test func(*judged), options ...kopf.ChildOption) {
	t.Helper()
	j := &judged{}
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
			if j.fail != nil {
				return nil, j.fail
			}
			return children(ctx, c)
		}, append([]kopf.ChildOption{kopf.ID("children"), kopf.Backoff(10 * time.Second)}, options...)...)
		r.OnUpdate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("other"))
		r.Conditions(examples)
	}, func(t *testing.T, h *kopftest.Harness) {
		j.Harness, j.t = h, t
		h.Create(newExample())
		h.Advance(time.Minute)
		test(j)
	})
}

// expect compares a condition, as "status reason: message", or "" if it is absent.
func (j *judged) expect(kind, want string) {
	j.t.Helper()
	one := newExample()
	j.Get(one)
	got := ""
	if c := condition.Of(one.Object).Get(kind); c != nil {
		got = fmt.Sprintf("%s %s: %s", c["status"], c["reason"], c["message"])
	}
	if got != want {
		j.t.Errorf("%s: got %q, want %q", kind, got, want)
	}
}

// writes returns the writes to the object since a number of them.
func (j *judged) writes(before int) (status, others int) {
	for _, w := range j.Writes()[before:] {
		switch {
		case !strings.Contains(w.String(), "kopfexamples"):
		case strings.Contains(w.String(), "/status"):
			status++
		default:
			others++
		}
	}
	return status, others
}

func (j *judged) patch(obj client.Object, merge string) {
	j.t.Helper()
	if err := j.Client().Patch(j.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(merge))); err != nil {
		j.t.Fatal(err)
	}
	j.Advance(time.Second)
}

// deployment returns the child of web.
func deployment() *appsv1.Deployment {
	one := newExample()
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: one.GetName(), Namespace: one.GetNamespace()}}
}

// report makes the deployment say what its controller would.
func (j *judged) report(ready bool, conditions ...appsv1.DeploymentCondition) {
	j.t.Helper()
	child := deployment()
	j.Get(child)
	child.Status = appsv1.DeploymentStatus{ObservedGeneration: child.Generation, Replicas: 1, UpdatedReplicas: 1, Conditions: conditions}
	if ready {
		child.Status.ReadyReplicas, child.Status.AvailableReplicas = 1, 1
	}
	if err := j.Client().Status().Update(j.t.Context(), child); err != nil {
		j.t.Fatal(err)
	}
	j.Advance(time.Second)
}

const reconciled = "True Reconciled: The handlers have finished."

func TestObjectIsNotReadyWhileItsChildrenCannotBeRestored(t *testing.T) {
	const failing = "ChildrenNotRestored: These handlers fail to restore children that others have changed, and are called again: children."
	withConditions(t, theme, func(j *judged) {
		j.expect("Ready", reconciled)
		before := len(j.Writes())
		j.fail = errors.New("the quota is exceeded")
		j.patch(newTheme(), `{"data":{"color":"red"}}`)
		j.expect("Ready", "False "+failing)
		j.expect("Reconciling", "True "+failing)
		if status, others := j.writes(before); status != 1 || others != 1 {
			j.t.Errorf("got %d writes to the status, and %d others: %v", status, others, j.Writes()[before:])
		}
		before = len(j.Writes())
		j.fail = errors.New("the quota is still exceeded")
		j.Advance(35 * time.Second)
		if status, others := j.writes(before); status != 0 || others != 3 {
			j.t.Errorf("got %d writes to the status, and %d others for three retries", status, others)
		}
		j.Restart()
		j.Advance(5 * time.Second)
		j.expect("Ready", "False HandlersRunning: The handlers have not finished yet.") // the handler is called for the restart, too
		j.fail = nil
		j.Advance(time.Minute)
		j.expect("Ready", reconciled)
		j.expect("Reconciling", "")
	})
}

func TestObjectIsStalledIfARestorationHasFailedForGood(t *testing.T) {
	const failed = "HandlersFailed: Handler children failed permanently: the quota is exceeded"
	for name, end := range map[string]func(*judged){
		"the children are restored": func(j *judged) { j.patch(newTheme(), `{"data":{"color":"green"}}`) },
		"the object is updated":     func(j *judged) { j.patch(newExample(), `{"spec":{"more":"x"}}`) },
	} {
		t.Run(name, func(t *testing.T) {
			withConditions(t, theme, func(j *judged) {
				j.fail = kopf.Permanent(errors.New("the quota is exceeded"))
				j.patch(newTheme(), `{"data":{"color":"red"}}`)
				j.expect("Ready", "False "+failed)
				j.expect("Stalled", "True "+failed)
				before := len(j.Writes())
				j.Advance(time.Hour)
				if status, others := j.writes(before); status+others > 0 {
					j.t.Errorf("got the writes %v", j.Writes()[before:])
				}
				j.fail = nil
				end(j)
				j.expect("Ready", reconciled)
				j.expect("Stalled", "")
			})
		})
	}
}

// The function is called again when a child has changed, and is then done.
func TestFailureOfAHandlerIsOverWhenItRestoresChildren(t *testing.T) {
	withConditions(t, theme, func(j *judged) {
		j.fail = kopf.Permanent(errors.New("no"))
		j.patch(newExample(), `{"spec":{"more":"x"}}`)
		j.expect("Stalled", "True HandlersFailed: Handler children failed permanently: no")
		j.fail = nil
		j.patch(newTheme(), `{"data":{"color":"red"}}`)
		j.expect("Ready", reconciled)
	})
}

func TestObjectIsNotReadyIfAnotherControllerTakesAChild(t *testing.T) {
	withConditions(t, theme, func(j *judged) {
		j.patch(newTheme(), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x","controller":true}]}}`)
		j.Advance(time.Minute)
		j.expect("Reconciling", "True ChildrenNotRestored: These handlers fail to restore children that others have changed, and are called again: children.")
		j.patch(newTheme(), `{"metadata":{"ownerReferences":null}}`)
		j.Advance(time.Minute)
		j.expect("Ready", reconciled)
	})
}

func TestObjectIsStalledByAFailedChild(t *testing.T) {
	withConditions(t, web, func(j *judged) {
		available := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}
		exceeded := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}
		j.report(true, available)
		j.expect("Ready", reconciled)
		j.report(false, exceeded)
		child := "Deployment.apps " + deployment().Namespace + "/" + deployment().Name
		j.expect("Stalled", "True ChildrenFailed: These children have failed: "+child+".")
		j.expect("Ready", "False ChildrenFailed: These children have failed: "+child+".")
		before := len(j.Writes())
		j.Restart()
		j.Advance(time.Minute)
		j.expect("Stalled", "True ChildrenFailed: These children have failed: "+child+".")
		if status, _ := j.writes(before); status > 0 {
			j.t.Errorf("got the writes %v", j.Writes()[before:])
		}
		j.report(true, available)
		j.Advance(time.Minute)
		j.expect("Ready", reconciled)
		j.expect("Stalled", "")
	}, kopf.WaitReady())
}

// What a handler that does not match anymore waits for does not concern the object.
func TestChildrenOfAHandlerThatDoesNotMatchDoNotCount(t *testing.T) {
	withConditions(t, web, func(j *judged) {
		j.expect("Ready", "False ChildrenNotReady: These children are not ready yet: Deployment.apps "+deployment().Namespace+"/"+deployment().Name+".")
		j.patch(newExample(), `{"metadata":{"labels":{"bare":"yes"}}}`)
		j.expect("Ready", reconciled)
		j.patch(newExample(), `{"metadata":{"labels":null}}`)
		j.expect("Ready", "False ChildrenNotReady: These children are not ready yet: Deployment.apps "+deployment().Namespace+"/"+deployment().Name+".")
	}, kopf.WaitReady(), kopf.Labels(map[string]kopf.Matcher{"bare": kopf.Absent()}))
}
