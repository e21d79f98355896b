// Package indexing fills the indices of an operator: it calls the indexing functions
// for the objects that the watches deliver, and keeps track of the objects for which
// a function fails.
//
// An Indexer serves the handlers of one resource. The watch calls it before anything
// else happens to an event (Update, Remove), so that all other handlers find in the
// indices what they find in the cluster. The Indexer keeps nothing about objects that
// are indexed successfully.
//
// An object for which the function fails is excluded from the index until the delay of
// its error is over, or for good, unless errors are ignored. In contrast to the
// specification, the object is indexed again when the delay is over, and not only at
// its next event, which may never come.
//
// Specification: In-memory indexing, "Errors in indexing".
package indexing

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/events/handlerlog"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/settings"
)

// minRetryDelay is the shortest delay between two attempts: a function that always
// fails must not block the watch all the time.
const minRetryDelay = 100 * time.Millisecond

// patience is how long the watch waits for one call of an indexing function. It is less while other
// calls do not return.
const patience = 10 * time.Second

// exitPatience is how long a function may take to return after its context is done.
const exitPatience = time.Second

// Config configures an Indexer.
type Config struct {
	// Handlers are the indexing functions of one resource. Other handlers are
	// ignored.
	Handlers registry.Handlers
	// Backoff is the delay after a regular error of a function whose errors are
	// temporary and that declares no backoff. The default is settings.DefaultBackoff.
	Backoff backoff.Backoff
	// Prepare returns the context of one call, and the CallContext for its arguments.
	// The logger of the CallContext names the object and the handler.
	Prepare func(ctx context.Context, body *object.Body, d *handler.Declaration) (context.Context, handler.CallContext)
	// Current returns the object as it is known now, or nil if it does not exist. It
	// is called after the delay of a failed attempt, and must not call the Indexer.
	Current func(owner object.Key) *object.Body
	// Misfit, if not nil, is called with the reason why an object does not fit the Go type
	// of the function, and with nil for all other objects. An object that does not fit is
	// left out of the index, and that is not an attempt.
	Misfit func(owner object.Key, d *handler.Declaration, misfit *handler.MisfitError)
	// Measure, if not nil, is called with the outcome of every attempt.
	Measure func(d *handler.Declaration, o call.Outcome)
}

// Indexer updates the indices for the objects of one resource. It is safe for
// concurrent use, and indexes one object at a time.
type Indexer struct {
	Config

	mu      sync.Mutex
	failing map[entry]*failure
	late    int // calls that have not returned in time, and still run
	closed  bool
}

// entry is one object in one index.
type entry struct {
	owner   object.Key
	handler *handler.Declaration
}

// failure is the state of an entry whose function has failed.
type failure struct {
	uid      types.UID
	attempts call.Attempts
	timer    *time.Timer // of the next attempt; nil if there will be none
}

// New returns an Indexer. It starts no goroutine.
func New(config Config) *Indexer {
	config.Handlers = config.Handlers.Where(func(d *handler.Declaration) bool { return d.Kind == handler.OnIndex })
	config.Backoff = config.Backoff.Or(backoff.Constant(settings.DefaultBackoff))
	return &Indexer{Config: config, failing: map[entry]*failure{}}
}

// Update indexes an object that was created or changed. If the object replaces another
// one with the same name, Remove must be called first. The context also limits later
// retries: there are none once it is done.
func (x *Indexer) Update(ctx context.Context, owner object.Key, body *object.Body) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	for _, d := range x.Handlers {
		at := entry{owner, d}
		known := x.failing[at]
		if known != nil && known.uid == body.UID() {
			continue // excluded, for good or until the next attempt
		}
		x.forgetFailure(at)
		x.indexObject(ctx, at, body, call.Attempts{})
	}
}

// Remove removes a deleted object from all indices. An object that is created with the
// same name later is not affected by earlier failures.
func (x *Indexer) Remove(owner object.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	for _, d := range x.Handlers {
		x.forgetFailure(entry{owner, d})
		d.Table.Remove(owner)
	}
}

// RemoveFunc removes all objects for which the function returns true, such as those
// that are not watched anymore.
func (x *Indexer) RemoveFunc(gone func(owner object.Key) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for at := range x.failing {
		if gone(at.owner) {
			x.forgetFailure(at)
		}
	}
	for _, d := range x.Handlers {
		d.Table.RemoveAll(gone)
	}
}

// Close stops the Indexer: later calls have no effect. It waits for the function that
// is running, if any, unless that ignores its context; cancel the context of Update first. The
// indices keep their values.
func (x *Indexer) Close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	for at := range x.failing {
		x.forgetFailure(at)
	}
}

// forgetFailure drops the failure of an entry, if there is one.
func (x *Indexer) forgetFailure(at entry) {
	known := x.failing[at]
	if known != nil && known.timer != nil {
		known.timer.Stop()
	}
	delete(x.failing, at)
}

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
	x.record(ctx, c)
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
		c.indexer.recordLate(ctx, c)
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

// recordLate takes in the outcome of a call that the watch has not waited for. An object that has changed is
// indexed again.
func (x *Indexer) recordLate(ctx context.Context, c *filling) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.late--
	isCurrent := x.isCurrent(c)
	if x.closed || x.failing[c.at] != c.late || ctx.Err() != nil {
		return
	}
	x.forgetFailure(c.at)
	if isCurrent {
		x.record(ctx, c)
		return
	}
	body := x.Current(c.at.owner)
	if body != nil && body.UID() == c.body.UID() {
		x.indexObject(ctx, c.at, body, call.Attempts{})
	}
}

// record takes in the outcome of a call.
func (x *Indexer) record(ctx context.Context, c *filling) {
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
	body := x.Current(at.owner)
	if body != nil && body.UID() == known.uid {
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
		x.reportMisfit(at, nil)
		return call.Outcome{}, false
	}
	var misfit *handler.MisfitError
	outcome = c.attempts.Try(ctx, at.handler, x.Backoff, func(ctx context.Context, a handler.Attempt) (any, error) {
		if failed != nil {
			return nil, failed
		}
		values, err := at.handler.CallIsolated(ctx, handler.NewCall(at.handler, arguments, a))
		if err == nil {
			err = c.store(values)
		}
		misfit = handler.AsMisfit(err)
		return nil, err
	})
	if ctx.Err() == nil {
		x.reportMisfit(at, misfit)
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

// reportMisfit reports why an object does not fit, or that it does.
func (x *Indexer) reportMisfit(at entry, misfit *handler.MisfitError) {
	if x.Misfit != nil {
		x.Misfit(at.owner, at.handler, misfit)
	}
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
