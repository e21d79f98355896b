package report

import (
	"errors"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// Outcome reports the outcome of one attempt of a handler in the log, and as an event if the
// handler has succeeded or failed.
func (r Reporter) Outcome(body *object.Body, id string, o call.Outcome) {
	id = r.ReportedID(id)
	log := r.Log.WithValues("handler", id)
	var children *handler.SubhandlersError
	var temporary *handler.TemporaryError
	switch {
	case o.Ignored != nil:
		log.Error(o.Ignored, "The handler failed; this is ignored.", handler.StackValues(o.Ignored)...)
	case o.Succeeded():
		r.Succeeded(body, id)
	case o.Final: // also if it has waited for its sub-handlers too long
		log.Error(o.Err, "The handler failed permanently.", handler.StackValues(o.Err)...)
		r.Event(body, Warning, events.ReasonHandlerFailed, events.AboutHandler(id, " failed permanently: "+o.Err.Error()))
	case errors.As(o.Err, &children):
		log.V(1).Info("The handler waits for its sub-handlers.", "delay", o.Delay.String())
	case errors.As(o.Err, &temporary): // the handler asks for it
		log.Info("The handler will be retried.", "error", o.Err.Error(), "delay", o.Delay.String())
		r.Event(body, Warning, "HandlerRetrying", events.AboutHandler(id, " will be retried: "+o.Err.Error()))
	case r.isRepetition(id, o.Err):
		log.V(1).Info("The handler failed again for the same reason, and will be retried.", "delay", o.Delay.String())
	default:
		log.Error(o.Err, "The handler failed and will be retried.", append(handler.StackValues(o.Err), "delay", o.Delay.String())...)
		r.Event(body, Warning, "HandlerRetrying", events.AboutHandler(id, " failed and will be retried: "+o.Err.Error()))
	}
}

// Ran reports that a run of a timer with a schedule has succeeded. An event would be too much: a run can be every minute.
func (r Reporter) Ran(id string, run time.Time) {
	r.Log.V(1).Info("The run of the schedule succeeded.", "handler", id, "scheduled", run.UTC().Format(time.RFC3339))
}

// Unscheduled reports that the next run of a timer with a schedule is unknown. The operator looks for it again after the
// delay, or when the object has changed if there is none.
func (r Reporter) Unscheduled(body *object.Body, id string, err error, delay time.Duration) {
	values := append(handler.StackValues(err), "handler", id)
	message := "The next run of the timer is unknown, until the object is corrected."
	if delay > 0 {
		message = "The next run of the timer is unknown, and will be looked for again."
		values = append(values, "delay", delay.String())
	}
	r.Log.Error(err, message, values...)
	r.Event(body, Warning, "ScheduleFailed", events.AboutHandler(id, " has no next run: "+err.Error()))
}

// isRepetition reports whether a handler has failed for the same reason as before, because the API server
// refuses a child. It does so less and less often, so that the log does not repeat what has to be done.
func (r Reporter) isRepetition(id string, err error) bool {
	var refused *convergence.ChildError
	if r.Object == nil || !errors.As(err, &refused) {
		return false
	}
	times := r.Object.Repeat("refused "+id, err.Error())
	return times&(times-1) != 0 // not a power of two
}

// Succeeded reports the success of a handler.
func (r Reporter) Succeeded(body *object.Body, id string) {
	id = r.ReportedID(id)
	r.Log.Info("The handler succeeded.", "handler", id)
	r.Event(body, Normal, "HandlerSucceeded", events.AboutHandler(id, " succeeded."))
}
