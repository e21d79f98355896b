package reconcile

import (
	"errors"
	"fmt"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// announce logs the start of a cycle, and the earlier cycle that it supersedes.
func (p *pass) announce(c *cycle) {
	progress := c.record.Progress
	if c.record.Called || progress.HasOpen(c.Reason) {
		return
	}
	for reason, count := range progress.Superseded(c.Reason) {
		p.report.Log.Info(fmt.Sprintf("The %s is superseded by the %s.", reason.Noun(), c.Reason.Noun()), "handlers", count)
	}
	switch log := p.report.Log.V(1); {
	case !log.Enabled():
	case len(c.handlers) == 0:
		log.Info(fmt.Sprintf("No handler matches this %s; it is only recorded.", c.Reason.Noun()), "changes", len(c.Diff))
	default:
		log.Info(fmt.Sprintf("The %s is in progress.", c.Reason.Noun()), "handlers", len(c.handlers), "changes", len(c.Diff))
	}
}

// measure counts an attempt of a handler. It counts sub-handlers as their declared handler,
// because sub-handlers can have as many ids as there are objects.
func (e *Engine) measure(r *resource, d *handler.Declaration, o execution.Outcome) {
	h := metrics.Handler{Resource: r.Name, Kind: string(d.Kind), ID: d.Top().ID}
	e.Metrics.Attempt(h, outcomeOf(o), o.Called, o.Took)
}

func outcomeOf(o execution.Outcome) metrics.Outcome {
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
