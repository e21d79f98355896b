package indexing

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/settings"
)

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
	if known := x.failing[at]; known != nil && known.timer != nil {
		known.timer.Stop()
	}
	delete(x.failing, at)
}
