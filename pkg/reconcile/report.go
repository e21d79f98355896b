package reconcile

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)

// About is what the context of a handler's call is about.
type About struct {
	Body     func() *object.Body // as it is when it is asked for
	Resource selector.Resource
	Logger   logr.Logger
}

// announce logs what is about to be handled, and what is given up for it: once, at
// the beginning.
func (p *pass) announce(c *cycle) {
	if c.called || c.progress.HasOpen(c.Reason) {
		return
	}
	for reason, count := range c.progress.Superseded(c.Reason) {
		p.log.Info(fmt.Sprintf("The %s is superseded by the %s.", reason.Noun(), c.Reason.Noun()), "handlers", count)
	}
	switch log := p.log.V(1); {
	case !log.Enabled():
	case len(c.handlers) == 0:
		log.Info(fmt.Sprintf("No handler is for this %s; it is taken note of.", c.Reason.Noun()), "changes", len(c.Diff))
	default:
		log.Info(fmt.Sprintf("The %s is in progress.", c.Reason.Noun()), "handlers", len(c.handlers), "changes", len(c.Diff))
	}
}

// report tells what has come of one attempt of a handler: in the log, and as an
// event of the object when the handler is done or has failed.
func (p *pass) report(c *cycle, d *handler.Declaration, o execution.Outcome) {
	log := p.log.WithValues("handler", d.ID)
	var children *handler.SubhandlersError
	var temporary *handler.TemporaryError
	switch {
	case o.Ignored != nil:
		log.Error(o.Ignored, "The handler failed; this is ignored.", handler.StackValues(o.Ignored)...)
	case o.Succeeded() && o.HasEdit:
		c.unwritten = append(c.unwritten, d.ID)
	case o.Succeeded():
		p.succeeded(d.ID)
	case o.Final: // be it that it has waited for its sub-handlers too long
		log.Error(o.Err, "The handler failed permanently.", handler.StackValues(o.Err)...)
		p.post(p.body, warning, "HandlerFailed", fmt.Sprintf("Handler %s failed permanently: %s", d.ID, o.Err))
	case errors.As(o.Err, &children):
		log.V(1).Info("The handler waits for its sub-handlers.", "delay", o.Delay.String())
	case errors.As(o.Err, &temporary): // the handler wants it so
		log.Info("The handler will be retried.", "error", o.Err.Error(), "delay", o.Delay.String())
		p.post(p.body, warning, "HandlerRetrying", fmt.Sprintf("Handler %s will be retried: %s", d.ID, o.Err))
	default:
		log.Error(o.Err, "The handler failed and will be retried.", append(handler.StackValues(o.Err), "delay", o.Delay.String())...)
		p.post(p.body, warning, "HandlerRetrying", fmt.Sprintf("Handler %s failed and will be retried: %s", d.ID, o.Err))
	}
}

// succeeded tells that nothing more is to be done for a handler.
func (p *pass) succeeded(id string) {
	p.log.Info("The handler succeeded.", "handler", id)
	p.post(p.body, normal, "HandlerSucceeded", fmt.Sprintf("Handler %s succeeded.", id))
}

// written tells of those whose success was open until now.
func (p *pass) written(c *cycle) {
	for _, id := range c.unwritten {
		p.succeeded(id)
	}
	c.unwritten = nil
}

// post reports something about the object as a Kubernetes event, if events of that
// kind are wanted.
func (p *pass) post(body *object.Body, eventType, reason, message string) {
	level := slog.LevelError
	if eventType == normal {
		level = slog.LevelInfo
	}
	if p.Poster != nil && p.Settings.Posting.Posts(level) {
		p.Poster.Post(events.Reference(body), eventType, reason, message)
	}
}
