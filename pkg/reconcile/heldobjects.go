package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/condition"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/request"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/heldobjects"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// misfit is a handler that cannot be called, because the object does not fit its Go type.
type misfit struct {
	handler *handler.Declaration
	err     *handler.MisfitError
	waits   bool // until the object fits; otherwise, the handler is skipped
}

// setMisfitsAside sets the selected handlers aside whose Go type the object does not fit: they
// are due, but cannot be called. It returns the handlers of the cycle, with those that wait
// and without those that are skipped. It asks only about handlers that are about to be called.
func (d detector) setMisfitsAside(c *cycle, selected registry.Handlers) registry.Handlers {
	return selected.Where(func(h *handler.Declaration) bool {
		if c.hasFinished(h) {
			return true
		}
		err := h.Misfit(&c.Cause)
		if err == nil || c.Reason == cause.Delete && h.OnMisfit == handler.CallUntyped {
			return true
		}
		waits := c.Reason != cause.Delete || c.mustWaitFor(h)
		c.misfits = append(c.misfits, misfit{h, err, waits})
		if waits {
			c.record.Progress.SetAside(h.ID, err)
		}
		return waits
	})
}

// mustWaitFor reports whether a deletion waits for a handler that does not fit. An object that
// no handler has worked on has nothing to clean up.
func (c *cycle) mustWaitFor(d *handler.Declaration) bool {
	return d.HoldsDeletion() && d.OnMisfit == handler.Hold && c.wasHandled()
}

// wasHandled reports whether a handler may have worked on the object before its deletion.
func (c *cycle) wasHandled() bool {
	progress := c.record.Progress
	return c.record.Base != nil || slices.ContainsFunc(progress.Stored().IDs(), func(id string) bool {
		stored := progress.Load(id).Stored()
		return stored.Purpose != cause.Delete && (stored.Retries > 0 || stored.Finished())
	})
}

// canHoldDeletion reports whether the deletion would wait for a handler, so that the object
// needs the finalizer. A handler that does not fit is waited for if other handlers have worked
// on the object, or are about to. It asks only about objects that do not have the finalizer.
func (d detector) canHoldDeletion(c *cycle) bool {
	return c.hasFinalizer || slices.ContainsFunc(d.resource.changing, func(h *handler.Declaration) bool {
		return h.HoldsDeletion() && h.InScope(&c.Cause) && (h.OnMisfit == handler.CallUntyped ||
			h.Misfit(&c.Cause) == nil || h.OnMisfit == handler.Hold && (c.wasHandled() || !c.waitsForMisfitsOnly()))
	})
}

// waitsForMisfitsOnly reports whether no handler of the cycle can be called, so that the cycle
// stays open, and nothing is stored. It is for cycles without background handlers yet.
func (c *cycle) waitsForMisfitsOnly() bool {
	return len(c.misfits) > 0 && len(c.misfits) == len(c.handlers)
}

// withoutMisfits returns the daemons and timers that can run.
func (d detector) withoutMisfits(c *cycle, selected registry.Handlers) registry.Handlers {
	return selected.Where(func(h *handler.Declaration) bool {
		err := h.Misfit(&c.Cause)
		if err != nil {
			c.misfits = append(c.misfits, misfit{h, err, true})
		}
		return err == nil
	})
}

// backgroundMisfits returns the daemons and timers that cannot run.
func (c *cycle) backgroundMisfits() []*handler.Declaration {
	var found []*handler.Declaration
	for _, m := range c.misfits {
		if m.handler.Kind.IsBackground() {
			found = append(found, m.handler)
		}
	}
	return found
}

// byPasses marks what passes find.
var byPasses = heldobjects.Finding{Reason: metrics.Misfit}

// reportMisfits reports the handlers that cannot be called: each once per problem, in the log
// and as an event. The first passes after a start share a summary, because there can be as
// many as objects; only held deletions have their events then.
func (p *pass) reportMisfits(c *cycle) {
	misfits := c.allMisfits()
	var problems map[string]string
	for _, m := range misfits {
		if problems == nil {
			problems = map[string]string{}
		}
		problems[m.handler.ID] = fmt.Sprint(c.deleting, m.err)
	}
	since := time.Now()
	if p.firstLook {
		since = time.Time{} // an earlier process knew it
	}
	fresh := p.engine.objects.held.ReplaceSince(p.key, byPasses, problems, since)
	for _, m := range misfits {
		if !slices.Contains(fresh, m.handler.ID) {
			continue
		}
		summarized := p.firstLook && p.object.initial.Load()
		message := m.message(p, c)
		if summarized {
			p.engine.objects.misfits.Add(groupOf(p.key, m.err), p.key, m.handler.ID)
		} else {
			p.report.Log.Info(message, "handler", m.handler.ID)
		}
		if m.waits && (!summarized || c.deleting) {
			p.report.Event(p.session.Body(), report.Warning, "ObjectMisfit", message)
		}
	}
}

// allMisfits returns the handlers that could not be called, including those that have found
// out when they were called: their former state does not fit, or a handler of drift.
func (c *cycle) allMisfits() []misfit {
	all := c.misfits
	add := func(handlers registry.Handlers, progress *execution.Progress) {
		for _, d := range handlers {
			err := handler.AsMisfit(progress.WhyAside(d.ID))
			if err != nil && !slices.ContainsFunc(all, func(m misfit) bool { return m.handler.ID == d.ID }) {
				all = append(slices.Clip(all), misfit{d, err, true})
			}
		}
	}
	if len(c.handlers) > 0 {
		add(c.handlers, c.record.Progress)
	}
	if c.calls.Calls != nil {
		add(c.calls.Handlers, c.calls.Progress)
	}
	return all
}

// leaveOutMisfits leaves the time in which handlers could not be called out of their timeouts.
// It is known since the attempt that was due then. The correction itself may have happened
// while no operator was running.
func (t *target) leaveOutMisfits(c *cycle) {
	for _, d := range c.handlers {
		since, wasHeld := t.engine.objects.held.Since(t.key, byPasses, d.ID)
		if wasHeld && c.record.Progress.WhyAside(d.ID) == nil {
			c.record.Progress.Load(d.ID).LeaveOut(since)
		}
	}
}

// message says why the handler is not called, and what a person can do.
func (m misfit) message(p *pass, c *cycle) string {
	switch {
	case !m.waits:
		return fmt.Sprintf("Handler %s is skipped in this deletion: %s.", m.handler.ID, m.err)
	case c.deleting:
		return fmt.Sprintf("The deletion is held for handler %s: %s. %s", m.handler.ID, m.err, m.remedies(p, c))
	default:
		return fmt.Sprintf("Handler %s is not called: %s. %s", m.handler.ID, m.err, m.remedies(p, c))
	}
}

// remedies lists the ways out.
func (m misfit) remedies(p *pass, c *cycle) string {
	var ways []string
	if !m.err.Former {
		ways = append(ways, "correct the field: kubectl edit "+p.kubectlName())
	}
	ways = append(ways, "or deploy an operator with a type that fits: kubectl set image deployment/OPERATOR CONTAINER=IMAGE")
	if p.engine.requests != nil && !m.handler.Kind.IsBackground() {
		ways = append(ways, "or give the handler up: "+p.kubectlRequest(request.Skip, m.handler.ID, c.deleting))
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

// byFailure marks deletions that are held by a failed handler.
var byFailure = heldobjects.Finding{Reason: metrics.Failure}

// deletionHeld is the type of the condition that reports a held deletion.
const deletionHeld = "DeletionHeld"

// reportHeldDeletion reports that a failed deletion handler holds the object: in the log,
// as an event, and as a condition if the status has conditions. It does so once, in the
// pass in which the handler has failed.
func (p *pass) reportHeldDeletion(c *cycle) {
	if c.Reason != cause.Delete {
		return
	}
	if c.unserved && p.object.reported.First("unserved") {
		const message = "The deletion is held because a deletion handler of another version of the resource is not called. Declare all handlers for one version."
		p.report.Log.Info(message)
		p.report.Event(p.session.Body(), report.Warning, deletionHeld, message)
	}
	id := c.record.HeldByFailure()
	var held map[string]string
	if id != "" {
		held = map[string]string{id: ""}
	}
	p.engine.objects.held.Replace(p.key, byFailure, held)
	if id == "" || !c.record.Called || !p.object.reported.First(deletionHeld) {
		return
	}
	message := fmt.Sprintf("The deletion is held because handler %s failed permanently: %s. Clean up manually and remove the finalizer %s, "+
		"or remove the handler's record from the object to call it again.",
		id, c.record.Progress.Load(id).Message, p.engine.Settings.Persistence.Finalizer)
	if p.engine.requests != nil {
		message += " Or give the handler up: " + p.kubectlRequest(request.Skip, id, true)
	}
	p.report.Log.Info(message)
	p.report.Event(p.session.Body(), report.Warning, deletionHeld, message)
	edit, now := execution.Edit{ID: id, Patch: &patch.Patch{}, BestEffort: true}, time.Now()
	edit.Patch.Apply(func(obj *unstructured.Unstructured) error {
		return condition.Set(obj.Object, metav1.Condition{Type: deletionHeld, Status: metav1.ConditionTrue, Reason: "HandlerFailed", Message: message}, now)
	})
	p.object.writes.Add(edit)
}
