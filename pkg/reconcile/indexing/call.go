package indexing

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/events/handlerlog"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// minRetryDelay is the shortest delay between two attempts: a function that always
// fails must not block the watch all the time.
const minRetryDelay = 100 * time.Millisecond

// patience is how long the watch waits for one call of an indexing function. It is less while other
// calls do not return.
const patience = 10 * time.Second

// exitPatience is how long a function may take to return after its context is done.
const exitPatience = time.Second

// filling is one call of an indexing function. It has its own goroutine, because the function may never
// return, and the watch must go on.
type filling struct {
	indexer  *Indexer
	at       entry
	body     *object.Body
	attempts call.Attempts // those that failed before
	done     chan struct{}

	outcome call.Outcome
	matched bool

	mu   sync.Mutex
	late *failure // set when no caller waits for the call anymore
}

// indexObject updates one index for one object. The attempts are those that failed
// before.
func (x *Indexer) indexObject(ctx context.Context, at entry, body *object.Body, attempts call.Attempts) {
	c := &filling{indexer: x, at: at, body: body, attempts: attempts, done: make(chan struct{})}
	go c.make(ctx)
	if !c.wait(ctx) && x.leave(ctx, c) {
		return
	}
	x.note(ctx, c)
}

// wait waits for the call. It returns false if that takes too long.
func (c *filling) wait(ctx context.Context) bool {
	timer := time.NewTimer(patience / time.Duration(1+c.indexer.late))
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
	}
	select {
	case <-c.done:
		return true
	case <-time.After(exitPatience):
		return false
	}
}

// leave excludes an object from the index until the call has returned. It returns false if the call has
// returned by now. The lock is held.
func (x *Indexer) leave(ctx context.Context, c *filling) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done:
		return false
	default:
	}
	c.late = &failure{uid: c.body.UID()}
	x.failing[c.at] = c.late
	x.late++
	c.at.handler.Table.Remove(c.at.owner)
	_, about := x.Prepare(ctx, c.body, c.at.handler)
	handlerlog.LogOnly(about.Logger).Error(nil, "The indexing function does not return. The object is excluded from the index until it does; all others are indexed.")
	return true
}

// make makes the call.
func (c *filling) make(ctx context.Context) {
	c.outcome, c.matched = c.indexer.callWithFilters(ctx, c)
	c.mu.Lock()
	close(c.done)
	late := c.late
	c.mu.Unlock()
	if late != nil {
		c.indexer.noteLate(ctx, c)
	}
}

// store puts the values of the object into the index, unless the object has changed since the watch has
// gone on.
func (c *filling) store(values any) error {
	c.mu.Lock()
	if c.late == nil {
		defer c.mu.Unlock()
		return c.at.handler.Table.Replace(c.at.owner, values)
	}
	c.mu.Unlock()
	c.indexer.mu.Lock()
	defer c.indexer.mu.Unlock()
	if !c.indexer.isCurrent(c) {
		return nil
	}
	return c.at.handler.Table.Replace(c.at.owner, values)
}

// isCurrent reports whether a late call was about the object as it is known now. The lock is held.
func (x *Indexer) isCurrent(c *filling) bool {
	if x.closed || x.failing[c.at] != c.late {
		return false
	}
	current := x.Current(c.at.owner)
	return current != nil && current.UID() == c.body.UID() && current.ResourceVersion() == c.body.ResourceVersion()
}

// noteLate notes the outcome of a call that the watch has not waited for. An object that has changed is
// indexed again.
func (x *Indexer) noteLate(ctx context.Context, c *filling) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.late--
	isCurrent := x.isCurrent(c)
	if x.closed || x.failing[c.at] != c.late || ctx.Err() != nil {
		return
	}
	x.forgetFailure(c.at)
	if isCurrent {
		x.note(ctx, c)
	} else if body := x.Current(c.at.owner); body != nil && body.UID() == c.body.UID() {
		x.indexObject(ctx, c.at, body, call.Attempts{})
	}
}

// note notes the outcome of a call.
func (x *Indexer) note(ctx context.Context, c *filling) {
	at := c.at
	outcome := c.outcome
	switch {
	case ctx.Err() != nil: // the outcome says nothing about the object
	case !c.matched:
		at.handler.Table.Remove(at.owner)
	case outcome.Err != nil:
		at.handler.Table.Remove(at.owner)
		known := &failure{uid: c.body.UID(), attempts: c.attempts}
		if !outcome.Final {
			known.timer = time.AfterFunc(max(outcome.Delay, minRetryDelay), func() { x.retry(ctx, at, known) })
		}
		x.failing[at] = known
	}
}

// retry indexes an object again after its delay. If the object is gone or replaced by
// now, the event about that is on its way.
func (x *Indexer) retry(ctx context.Context, at entry, known *failure) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failing[at] != known || ctx.Err() != nil {
		return
	}
	x.forgetFailure(at)
	if body := x.Current(at.owner); body != nil && body.UID() == known.uid {
		x.indexObject(ctx, at, body, known.attempts)
	}
}

// callWithFilters calls the function, unless the object does not match its filters or does not
// fit its Go type. A failing filter counts as an error of the function.
func (x *Indexer) callWithFilters(ctx context.Context, c *filling) (outcome call.Outcome, matched bool) {
	at := c.at
	ctx, arguments := x.Prepare(ctx, c.body, at.handler)
	failed := handler.WithRecover(func() error {
		matched = at.handler.InScope(&handler.Cause{CallContext: arguments})
		return nil
	})
	if !matched && failed == nil {
		x.noteMisfit(at, nil)
		return call.Outcome{}, false
	}
	var misfit *handler.MisfitError
	outcome = c.attempts.Try(ctx, at.handler, x.Backoff, func(ctx context.Context, a handler.Attempt) (any, error) {
		if failed != nil {
			return nil, failed
		}
		err := c.callAndStore(ctx, arguments, a)
		misfit = handler.AsMisfit(err)
		return nil, err
	})
	if ctx.Err() == nil {
		x.noteMisfit(at, misfit)
	}
	if misfit != nil {
		return call.Outcome{}, false
	}
	if ctx.Err() == nil {
		logFailure(handlerlog.LogOnly(arguments.Logger), outcome)
		if x.Measure != nil {
			x.Measure(at.handler, outcome)
		}
	}
	return outcome, true
}

func (x *Indexer) noteMisfit(at entry, misfit *handler.MisfitError) {
	if x.Misfit != nil {
		x.Misfit(at.owner, at.handler, misfit)
	}
}

// callAndStore calls the function, and puts the values that it returns into the index.
func (c *filling) callAndStore(ctx context.Context, arguments handler.CallContext, a handler.Attempt) error {
	values, err := c.at.handler.CallIndex(ctx, handler.NewIndexed(arguments, c.at.handler.Param, a))
	if err != nil {
		return err
	}
	return c.store(values)
}

// logFailure logs the outcome of a failed attempt. Successes are not logged: they are
// many, and of no interest.
func logFailure(log logr.Logger, o call.Outcome) {
	var temporary *handler.TemporaryError
	switch {
	case o.Ignored != nil:
		log.Error(o.Ignored, "The object could not be indexed; its values in the index stay.", handler.StackValues(o.Ignored)...)
	case o.Err == nil:
	case o.Final:
		log.Error(o.Err, "The object could not be indexed; it is excluded from the index.", handler.StackValues(o.Err)...)
	case errors.As(o.Err, &temporary): // the function asks for it
		log.Info("The object is excluded from the index for now.", "error", o.Err.Error(), "delay", o.Delay.String())
	default:
		log.Error(o.Err, "The object could not be indexed; it is excluded from the index for now.", append(handler.StackValues(o.Err), "delay", o.Delay.String())...)
	}
}
