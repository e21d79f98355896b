package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/condition"
	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/heldobjects"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// passMisfit marks the misfits that passes find.
var passMisfit = heldobjects.Finding{Reason: metrics.Misfit}

// reportMisfits reports the handlers that cannot be called: each once per problem, in the log
// and as an event. The first passes after a start share a summary, because there can be as
// many as objects; only held deletions have their events then.
func (p *pass) reportMisfits(c *cycle) {
	misfits := c.AllMisfits(c.calls.update())
	var problems map[string]string
	for _, m := range misfits {
		if problems == nil {
			problems = map[string]string{}
		}
		problems[m.Handler.ID] = fmt.Sprint(c.Deleting, m.Err)
	}
	since := time.Now()
	if p.firstLook {
		since = time.Time{} // an earlier process knew it
	}
	fresh := p.engine.objects.held.ReplaceSince(p.key, passMisfit, problems, since)
	for _, m := range misfits {
		if !slices.Contains(fresh, m.Handler.ID) {
			continue
		}
		summarized := p.firstLook && p.object.initial.Load()
		message := p.messageOf(m, c)
		if summarized {
			p.engine.objects.misfits.Add(groupOf(p.key, m.Err), p.key, m.Handler.ID)
		} else {
			p.report.Log.Info(message, "handler", m.Handler.ID)
		}
		if m.Waits && (!summarized || c.Deleting) {
			p.report.Event(p.session.Body(), report.Warning, "ObjectMisfit", message)
		}
	}
}

// messageOf says why the handler is not called, and what a person can do.
func (p *pass) messageOf(m plan.Misfit, c *cycle) string {
	switch {
	case !m.Waits:
		return fmt.Sprintf("Handler %s is skipped in this deletion: %s.", m.Handler.ID, m.Err)
	case c.Deleting:
		return fmt.Sprintf("The deletion is held for handler %s: %s. %s", m.Handler.ID, m.Err, p.remediesOf(m, c))
	default:
		return fmt.Sprintf("Handler %s is not called: %s. %s", m.Handler.ID, m.Err, p.remediesOf(m, c))
	}
}

// remediesOf lists the ways out.
func (p *pass) remediesOf(m plan.Misfit, c *cycle) string {
	var ways []string
	if !m.Err.Former {
		ways = append(ways, "correct the field: kubectl edit "+p.kubectlName())
	}
	ways = append(ways, "or deploy an operator with a type that fits: kubectl set image deployment/OPERATOR CONTAINER=IMAGE")
	if p.engine.requests != nil && !m.Handler.Kind.IsBackground() {
		ways = append(ways, "or give the handler up: "+p.kubectlRequest(request.Skip, m.Handler.ID, c.Deleting))
	}
	text := strings.Join(ways, "; ") + "."
	return strings.ToUpper(text[:1]) + text[1:]
}

// kubectlName returns the arguments of kubectl that name the object.
func (t *target) kubectlName() string {
	name := t.resource.Plural
	if t.resource.Group != "" {
		name += "." + t.resource.Group
	}
	name += " " + t.key.Name
	if t.key.Namespace != "" {
		name += " -n " + t.key.Namespace
	}
	return name
}

// failedDeletion marks deletions that are held by a failed handler.
var failedDeletion = heldobjects.Finding{Reason: metrics.Failure}

// deletionHeld is the type of the condition that reports a held deletion.
const deletionHeld = "DeletionHeld"

// reportHeldDeletion reports that a failed deletion handler holds the object: in the log,
// as an event, and as a condition if the status has conditions. It does so once, in the
// pass in which the handler has failed.
func (p *pass) reportHeldDeletion(c *cycle) {
	if c.Reason != cause.Delete {
		return
	}
	if c.Unserved && p.object.reported.First("unserved") {
		const message = "The deletion is held because a deletion handler of another version of the resource is not called. Declare all handlers for one version."
		p.report.Log.Info(message)
		p.report.Event(p.session.Body(), report.Warning, deletionHeld, message)
	}
	id := c.Cycle.HeldByFailure()
	var held map[string]string
	if id != "" {
		held = map[string]string{id: ""}
	}
	p.engine.objects.held.Replace(p.key, failedDeletion, held)
	if id == "" || !c.Cycle.Called || !p.object.reported.First(deletionHeld) {
		return
	}
	message := fmt.Sprintf("The deletion is held because handler %s failed permanently: %s. Clean up manually and remove the finalizer %s, "+
		"or remove the handler's record from the object to call it again.",
		id, c.Cycle.Progress.Load(id).Message, p.engine.Settings.Persistence.Finalizer)
	if p.engine.requests != nil {
		message += " Or give the handler up: " + p.kubectlRequest(request.Skip, id, true)
	}
	p.report.Log.Info(message)
	p.report.Event(p.session.Body(), report.Warning, deletionHeld, message)
	edit := call.Edit{ID: id, Patch: &patch.Patch{}, BestEffort: true}
	now := time.Now()
	edit.Patch.Apply(func(obj *unstructured.Unstructured) error {
		return condition.Set(obj.Object, metav1.Condition{Type: deletionHeld, Status: metav1.ConditionTrue, Reason: "HandlerFailed", Message: message}, now)
	})
	p.object.writes.Add(edit)
}
