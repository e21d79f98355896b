package reconcile

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// deletionHeld is the type of the condition that reports a held deletion.
const deletionHeld = "DeletionHeld"

// reportHeldDeletion reports that a failed deletion handler holds the object: in the log,
// as an event, and as a condition if the status has conditions. It does so once, in the
// pass in which the handler has failed.
func (p *pass) reportHeldDeletion(c *cycle) {
	if c.Reason != cause.Delete || !c.record.Called {
		return
	}
	id := c.record.HeldByFailure()
	if id == "" || !p.object.reported.First(deletionHeld) {
		return
	}
	message := fmt.Sprintf("The deletion is held because handler %s failed permanently: %s. Clean up manually and remove the finalizer %s, "+
		"or remove the handler's record from the object to call it again.",
		id, c.record.Progress.Load(id).Message, p.engine.Settings.Persistence.Finalizer)
	p.report.Log.Info(message)
	p.report.Event(p.session.Body(), report.Warning, deletionHeld, message)
	condition := &patch.Patch{}
	condition.Apply(func(obj *unstructured.Unstructured) error { return setCondition(obj.Object, deletionHeld, message) })
	p.object.writes.Add(execution.Edit{ID: id, Patch: condition, BestEffort: true})
}

// setCondition adds a true condition to the status, or replaces the condition of the same
// type, unless nothing would change.
func setCondition(obj map[string]any, kind, message string) error {
	conditions, _, err := unstructured.NestedSlice(obj, "status", "conditions")
	if err != nil {
		return err
	}
	condition := map[string]any{
		"type": kind, "status": "True", "reason": "HandlerFailed", "message": message,
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}
	index := slices.IndexFunc(conditions, func(c any) bool { known, _ := c.(map[string]any); return known["type"] == kind })
	if index < 0 {
		return unstructured.SetNestedSlice(obj, append(conditions, condition), "status", "conditions")
	}
	known, _ := conditions[index].(map[string]any)
	if known["status"] == condition["status"] {
		condition["lastTransitionTime"] = known["lastTransitionTime"]
	}
	conditions[index] = condition
	return unstructured.SetNestedSlice(obj, conditions, "status", "conditions")
}
