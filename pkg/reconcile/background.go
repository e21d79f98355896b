package reconcile

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// background is what the daemons and timers of one object know of the engine, and
// the engine of them. They never write to the object: what they want to be
// written is taken along by the passes, which are the only writers.
//
// There is one for every object of a resource with such handlers, as long as the
// object exists, and a little longer if they do.
type background struct {
	engine *Engine
	served *served
	key    object.Key
	uid    types.UID
	memory *memory
	group  *daemons.Group

	// essence is a digest of the object's essence in the last pass.
	essence uint64
	// stirred: a pass is wanted, though nothing has happened to the object.
	stirred atomic.Bool

	mu   sync.Mutex
	seen *object.Snapshot          // the newest one, however often it is looked at
	body weak.Pointer[object.Body] // of that, as long as anybody looks at it

	inbox  []delivery // not taken by a pass yet
	outbox []delivery // on the way
	closed bool       // the object is gone
}

// delivery is what one run of a daemon or a timer wants to be written.
type delivery struct {
	execution.Edit
	done chan<- struct{} // closed when it is not under way any more
}

var _ daemons.Host = (*background)(nil)

// live is the object as it is now; after its end, as it was at last.
func (b *background) live() *object.Body {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look()
	body := b.body.Value()
	if body == nil {
		body = b.seen.Body()
		b.body = weak.Make(body)
	}
	return body
}

// refresh lets go of a version that was seen earlier, although nobody asks for a
// newer one: what is seen is shared with the watch then, and costs nothing.
func (b *background) refresh() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look()
}

// look is refresh with the lock held.
func (b *background) look() {
	now := b.served.cached(b.key.NamespacedName)
	if now != nil && now != b.seen && now.GetUID() == b.uid {
		b.seen, b.body = now, weak.Pointer[object.Body]{}
	}
}

// Prepare makes the context and the subject of one call.
func (b *background) Prepare(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext) {
	e := b.engine
	about := About{Body: b.live, Resource: b.served.Resource}
	about.Logger = e.told.Logger(e.logger(b.key), about.Body, "handler", d.ID)
	subject := handler.CallContext{Live: about.Body, Resource: &b.served.Resource, Logger: about.Logger, Client: e.Client, Memo: b.memos}
	return e.Context(ctx, about), subject
}

func (b *background) memos() *memo.Values { return b.memory.memos(b.uid, b.engine.Memos) }

// Deliver waits until a pass has written it, or until there is nothing left to
// write it to. A refusal of the content is reported by the pass.
func (b *background) WriteEdit(ctx context.Context, c execution.Edit) error {
	done := make(chan struct{})
	if !b.put(delivery{c, done}) {
		return nil
	}
	b.engine.enqueue(b.key)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *background) put(d delivery) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.inbox = append(b.inbox, d)
	}
	return !b.closed
}

// take is for a pass, which is about to write what is returned.
func (b *background) take() []execution.Edit {
	b.mu.Lock()
	defer b.mu.Unlock()
	var taken []execution.Edit
	for _, d := range b.inbox {
		taken = append(taken, d.Edit)
	}
	b.outbox, b.inbox = append(b.outbox, b.inbox...), nil
	return taken
}

// settle is for a pass that has ended, and has left this unwritten.
func (b *background) settle(unsent []execution.Edit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outbox = slices.DeleteFunc(b.outbox, func(d delivery) bool {
		waiting := slices.ContainsFunc(unsent, func(c execution.Edit) bool { return c.Patch == d.Patch })
		if !waiting {
			close(d.done)
		}
		return !waiting
	})
}

// close stops the daemons and timers of an object that is gone. It waits for
// none of them.
func (b *background) close() { b.end(handler.StopDeleted) }

// end is close for any reason.
func (b *background) end(reason handler.StopReason) {
	if b == nil {
		return
	}
	b.group.Stop(reason)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range slices.Concat(b.inbox, b.outbox) {
		close(d.done)
	}
	b.inbox, b.outbox, b.closed = nil, nil, true
}

// Report tells what has come of one run, as of any other handler's.
func (b *background) Report(_ context.Context, d *handler.Declaration, o execution.Outcome) {
	b.visit().report(&cycle{}, d, o)
}

// Measure counts one run.
func (b *background) Measure(d *handler.Declaration, o execution.Outcome) {
	b.engine.measure(b.served, d, o)
}

// Warn tells of a daemon that does not behave.
func (b *background) Warn(d *handler.Declaration, reason, message string) {
	p := b.visit()
	p.log.Info(message, "handler", d.ID)
	p.post(p.body, warning, reason, message)
}

// Ended asks for a pass: the object may be free of its finalizer now, or the
// daemon may have to be started again.
func (b *background) Requeue() {
	b.stirred.Store(true)
	b.engine.enqueue(b.key)
}

// visit is a pass that only talks about the object.
func (b *background) visit() *pass {
	return &pass{Engine: b.engine, served: b.served, key: b.key, log: b.engine.logger(b.key), body: b.live()}
}
