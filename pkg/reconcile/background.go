package reconcile

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/storage"
)

// background connects the daemons and timers of one object with the engine. They never
// write to the object: the passes, which are the only writers, write their edits.
//
// Every object of a resource with such handlers has one, until the object is gone and its
// handlers have ended. The methods for passes accept nil, which means that there are no
// daemons and timers.
type background struct {
	engine   *Engine
	resource *resource
	key      object.Key
	uid      types.UID
	object   *objectState
	group    *daemons.Group

	// essence is a digest of the object's essence in the last pass.
	essence uint64
	// requeueRequested is set if a pass is needed although the object has not changed.
	requeueRequested atomic.Bool

	mu   sync.Mutex
	seen *object.Snapshot          // the latest version
	body weak.Pointer[object.Body] // the body of seen while it is in use

	inbox   []call.Edit // waiting for a pass
	stopped bool        // the object is gone
}

var _ daemons.Host = (*background)(nil)

// live returns the current object, or its last version after it is gone.
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

// refresh releases an earlier version, even if no handler asks for a newer one: the latest
// version is shared with the watch, and costs nothing.
func (b *background) refresh() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look()
}

// look does the work of refresh. The caller must hold the lock.
func (b *background) look() {
	now := b.resource.Cached(b.key.NamespacedName)
	if now != nil && now != b.seen && now.GetUID() == b.uid {
		b.seen = now
		b.body = weak.Pointer[object.Body]{}
	}
}

// Prepare returns the context and the arguments of one call.
func (b *background) Prepare(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext) {
	ctx, logger := b.engine.callContext(ctx, b.resource, b.key, b.live, d)
	return ctx, handler.CallContext{
		Live: b.live, Resource: &b.resource.Resource.Resource, Logger: logger, Client: b.engine.Client,
		Memo: func() *memo.Values { return b.object.memosOf(b.uid, b.engine.Memos) },
	}
}

// WriteEdit waits until a pass has written the edit, or until the object is gone. The pass
// reports a rejection of its content.
func (b *background) WriteEdit(ctx context.Context, edit call.Edit) error {
	done := make(chan struct{})
	edit.Done = func() { close(done) }
	if !b.addEdit(edit) {
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

func (b *background) addEdit(edit call.Edit) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped {
		b.inbox = append(b.inbox, edit)
	}
	return !b.stopped
}

// takeEdits returns the waiting edits to a pass, which writes them.
func (b *background) takeEdits() []call.Edit {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.inbox
	b.inbox = nil
	return taken
}

// stop stops the daemons and timers of an object that is gone or no longer watched. It
// does not wait for them.
func (b *background) stop(reason stop.Reason) {
	if b == nil {
		return
	}
	b.group.Stop(reason)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, edit := range b.inbox {
		edit.Finish()
	}
	b.inbox = nil
	b.stopped = true
}

// suspend stops the daemons and timers until the next pass that may start them.
func (b *background) suspend() {
	if b == nil {
		return
	}
	b.requeueRequested.Store(false)
	b.group.Suspend()
}

// LastRun returns the last run of a timer with a schedule.
func (b *background) LastRun(ctx context.Context, d *handler.Declaration) (time.Time, error) {
	return b.engine.records.LastRun(ctx, b.live(), d.ID, b.reporter())
}

// PutRun stores the end of a run. A storage elsewhere must keep nothing of an object that is gone.
func (b *background) PutRun(ctx context.Context, d *handler.Declaration, run storage.Record, into *patch.Patch) error {
	if b.engine.storesElsewhere && !b.resource.Has(b.key.NamespacedName, b.uid) {
		return nil
	}
	merge := storage.Patch{}
	err := b.engine.records.Storages.Progress.Store(ctx, b.live(), merge, record.RunOf(d.ID), &run)
	into.Merge(merge)
	return err
}

// Trace starts the span of one attempt, which may have begun before.
func (b *background) Trace(ctx context.Context, d *handler.Declaration, a handler.Attempt) (context.Context, call.EndSpan) {
	if b.engine.spans == nil {
		return ctx, nil
	}
	return b.engine.spans.single(ctx, d, b.key, b.live(), a.Retry+1, a.Now)
}

// Report reports the outcome of one attempt, as of any other handler's.
func (b *background) Report(_ context.Context, d *handler.Declaration, o call.Outcome) {
	b.reporter().Outcome(b.live(), d.ID, o)
}

// Measure counts one attempt.
func (b *background) Measure(d *handler.Declaration, o call.Outcome) {
	b.engine.measure(b.resource, d, o)
}

// Warn reports a misbehaving daemon.
func (b *background) Warn(d *handler.Declaration, reason, message string) {
	r := b.reporter()
	r.Log.Info(message, "handler", d.ID)
	r.Event(b.live(), report.Warning, reason, message)
}

// reporter returns a reporter that also knows an object that is gone, or that another one has replaced.
func (b *background) reporter() report.Reporter { return b.engine.reporterOf(b.key, b.live, nil) }

// Requeue requests a pass: the finalizer may be removable now, or the daemon may have to be
// restarted.
func (b *background) Requeue() {
	b.requeueRequested.Store(true)
	b.engine.enqueue(b.key)
}

// isRequeueRequested reports whether a daemon or timer has requested this pass.
func (b *background) isRequeueRequested() bool { return b != nil && b.requeueRequested.Load() }

// areDaemonsRunning reports whether daemons must end before the object can be deleted.
func (b *background) areDaemonsRunning() bool { return b != nil && b.group.HasRunningDaemons() }

// Identity returns the object, also after another one has its name.
func (b *background) Identity() daemons.Identity {
	return daemons.Identity{Resource: b.key.Resource, UID: b.uid}
}

// stopBackgroundOfDeleted stops the daemons and timers of an object that is being
// deleted.
func (p *pass) stopBackgroundOfDeleted() {
	if b := p.object.background; b != nil && p.session.Body().Deleting() {
		b.requeueRequested.Store(false)
		b.group.Stop(stop.Deleted)
	}
}

// syncBackground starts and stops daemons and timers to match the current object.
func (p *pass) syncBackground(c *cycle) error {
	if c.Deleting {
		return nil
	}
	b := p.backgroundOf(p.session.Body(), len(c.Background) > 0)
	if b == nil {
		return nil
	}
	b.requeueRequested.Store(false)
	changed, err := b.hasEssenceChanged(p.session.Body())
	var misfits []*handler.Declaration
	for _, m := range c.Misfits {
		if m.Handler.Kind.IsBackground() {
			misfits = append(misfits, m.Handler)
		}
	}
	b.group.Sync(c.Background, changed, misfits...)
	return err
}

// hasEssenceChanged reports whether the essence has changed since the last pass. Only that
// resets the idle time of timers, so it returns false without idle timers.
func (b *background) hasEssenceChanged(body *object.Body) (bool, error) {
	if !b.resource.idling {
		return false, nil
	}
	digest, err := digestOf(b.engine.records.Essence(body, b.resource.Fields))
	before := b.essence
	b.essence = digest
	return before != digest, err
}
