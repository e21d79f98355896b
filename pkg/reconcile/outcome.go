package reconcile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
)

// announce logs the start of a cycle, and the earlier cycle that it supersedes.
func (t *target) announce(c *cycle) {
	progress := c.Cycle.Progress
	if c.Cycle.Called || progress.Stored().HasOpen(c.Reason) {
		return
	}
	for reason, count := range progress.Stored().Superseded(c.Reason) {
		t.report.Log.Info(fmt.Sprintf("The %s is superseded by the %s.", reason.Noun(), c.Reason.Noun()), "handlers", count)
	}
	switch log := t.report.Log.V(1); {
	case !log.Enabled(), c.Reason == cause.Resume && len(c.Handlers) == 0: // a resumption is not recorded
	case len(c.Handlers) == 0:
		log.Info(fmt.Sprintf("No handler matches this %s; it is only recorded.", c.Reason.Noun()), "changes", len(c.Diff))
	default:
		log.Info(fmt.Sprintf("The %s is in progress.", c.Reason.Noun()), "handlers", len(c.Handlers), "changes", len(c.Diff))
	}
}

// reportDropped reports the handlers that were retried for this cause, and whose filters do not
// match anymore: they are not called again, and the cycle ends without them.
func (t *target) reportDropped(c *cycle, body *object.Body) {
	if c.Cycle == nil || !c.Cycle.Progress.Stored().HasStale() {
		return // nearly always
	}
	for _, id := range c.Cycle.Progress.Stored().IDs() {
		for _, d := range t.resource.Changing {
			isCalled := slices.ContainsFunc(c.Handlers, func(other *handler.Declaration) bool { return other.ID == id })
			if d.ID != id || isCalled {
				continue
			}
			v := c.Verdict(d, requests.Suspension{}, time.Now())
			if v.State != verdict.Dropped || !t.object.reported.First("dropped "+id+" "+v.Filter.String()) {
				continue
			}
			message := fmt.Sprintf("Handler %s %s.", id, v)
			t.report.Log.Info(message, "handler", id)
			t.report.Event(body, report.Warning, "HandlerDropped", message)
		}
	}
}

// measure counts an attempt of a handler. It counts sub-handlers as their declared handler,
// because sub-handlers can have as many ids as there are objects.
func (e *Engine) measure(r *resource, d *handler.Declaration, o call.Outcome) {
	e.Metrics.Attempt(r.measured(d), outcomeOf(o), o.Called, o.Took)
}

func outcomeOf(o call.Outcome) metrics.Outcome {
	var children *handler.SubhandlersError
	switch {
	case o.Ignored != nil:
		return metrics.Ignored
	case o.Succeeded():
		return metrics.Succeeded
	case o.Final:
		return metrics.Failed
	case errors.As(o.Err, &children):
		return metrics.Waiting
	default:
		return metrics.Retried
	}
}

// The reasons of events that say whether the work on an object ends.
const (
	ReasonReconcileError = "ReconcileError"
	ReasonCycleFinished  = "CycleFinished"
)

// retriedLater begins the message of the event about an error, which follows.
const retriedLater = "The object cannot be handled now; it will be retried: "

// ErrorIn returns the error in the message of an event with the reason ReconcileError.
func ErrorIn(message string) string { return strings.TrimPrefix(message, retriedLater) }

// lastingFailures is the number of consecutive errors after which an event reports them
// once.
const lastingFailures = 2

// recordFailure returns the delay of an object after an error that does not come from its
// handlers.
func (p *pass) recordFailure(err error) time.Duration {
	delays := p.engine.Settings.Queueing.ErrorDelays
	var delay time.Duration
	if len(delays) > 0 {
		delay = max(delays[min(int(p.object.failures), len(delays)-1)], kube.RetryAfter(err))
	}
	p.object.failures = min(p.object.failures, math.MaxUint16-1) + 1
	p.engine.Metrics.Error(p.key.Resource)
	p.object.notBefore = time.Now().Add(delay)
	p.report.Log.Error(err, "The object cannot be handled now; it will be retried.", "failures", p.object.failures, "delay", delay.String())
	if p.object.failures != lastingFailures {
		return delay
	}

	// The event uses only what is known about the object without reading it.
	body := p.session.Body()
	if body == nil {
		cached := p.engine.cached(p.resource, p.key)
		if cached == nil {
			return delay
		}
		body = cached.Body()
	}
	p.report.Event(body, report.Warning, ReasonReconcileError, retriedLater+err.Error())
	return delay
}
