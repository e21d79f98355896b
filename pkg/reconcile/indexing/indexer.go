package indexing

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Config is what an Indexer needs.
type Config struct {
	// Handlers are the indexing functions of one resource; others are left out.
	Handlers registry.Handlers
	// Backoff is the pause after a regular error of a function whose errors are
	// temporary and that has none of its own. Default: settings.DefaultBackoff.
	Backoff time.Duration
	// Prepare makes the context and the subject of one call. The logger of the
	// subject has the object and the handler in it.
	Prepare func(ctx context.Context, body *object.Body, d *handler.Declaration) (context.Context, handler.CallContext)
	// Current is the object as it is known now; nil if it is not there. It is
	// asked when the pause of an object is over, and must not call the Indexer.
	Current func(owner object.Key) *object.Body
	// Measure is told what has come of every attempt; nil: nobody wants to know.
	Measure func(d *handler.Declaration, o execution.Outcome)
}

// Indexer fills the indices with the objects of one resource. It is safe for
// concurrent use, and indexes one object at a time.
type Indexer struct {
	Config

	mu      sync.Mutex
	failing map[entry]*failure
	closed  bool
}

// entry is one object in one index.
type entry struct {
	owner   object.Key
	handler *handler.Declaration
}

// failure is what is remembered of an entry whose function has failed.
type failure struct {
	uid      types.UID
	attempts execution.Attempts
	timer    *time.Timer // until the next attempt; nil: there is none
}

// New makes an Indexer. It has no goroutine of its own.
func New(config Config) *Indexer {
	config.Handlers = config.Handlers.Where(func(d *handler.Declaration) bool { return d.Kind == handler.OnIndex })
	if config.Backoff == 0 {
		config.Backoff = settings.DefaultBackoff
	}
	return &Indexer{Config: config, failing: map[entry]*failure{}}
}

// Update indexes an object that has come or changed. For an object in the place of
// another one of its name, Gone is called before. The context is also for what is
// to be repeated later: nothing is, when it is done.
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
			continue // excluded, for ever or until the pause is over
		}
		x.forgetFailure(at)
		x.indexObject(ctx, at, body, execution.Attempts{})
	}
}

// Remove takes an object that was deleted out of all indices. One that is created
// under its name is another object, and nothing is held against it.
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

// RemoveFunc takes out all objects that are not watched any longer.
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

// Close ends it: whatever is called afterwards has no effect. It waits for the
// function that is running, if there is one; end the context of Seen first. The
// indices stay as they are.
func (x *Indexer) Close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	for at := range x.failing {
		x.forgetFailure(at)
	}
}

// forget drops what is remembered of an entry.
func (x *Indexer) forgetFailure(at entry) {
	if known := x.failing[at]; known != nil && known.timer != nil {
		known.timer.Stop()
	}
	delete(x.failing, at)
}
