package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/internal/relist"
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

	mu      sync.Mutex
	stopped bool // the object is gone
	// seesWrites is set if a daemon writes before it returns, or waits for changes, for which what the operator has written
	// before is no news: that is seen at once, and not only when the watch shows it.
	seesWrites bool
	seen       *object.Snapshot          // the latest version
	body       weak.Pointer[object.Body] // the body of seen while it is in use

	inbox []call.Edit // waiting for a pass
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
	now := b.engine.cached(b.resource, b.key)
	isAhead := b.seesWrites && now != nil && relist.IsOlder(now.GetResourceVersion(), b.seen.GetResourceVersion())
	if now != nil && now != b.seen && now.GetUID() == b.uid && !isAhead {
		b.show(now)
	}
}

// show makes a version the one that handlers see. The caller must hold the lock.
func (b *background) show(version *object.Snapshot) {
	b.seen = version
	b.body = weak.Pointer[object.Body]{}
}

// beginAnew forgets the version that handlers see: it belongs to another history of the cluster.
func (b *background) beginAnew() {
	if b == nil {
		return
	}
	now := b.engine.cached(b.resource, b.key)
	if now == nil || now.GetUID() != b.uid {
		return
	}
	b.mu.Lock()
	b.show(now)
	b.mu.Unlock()
	b.engine.attentions.beginAnew(b.key, now.Body())
}

// BeginWrite tells the daemons of the object that the operator writes to it.
func (p *pass) BeginWrite() {
	if p.resource.isAttended {
		p.engine.attentions.beginWrite(p.key)
	}
}

// EndWrite tells the daemons of the object what has become of a write.
func (p *pass) EndWrite(before, after *object.Body, certain bool) {
	if b := p.object.background; b != nil && after != nil && certain {
		b.showWrite(after)
	}
	if p.resource.isAttended {
		p.engine.attentions.endWrite(p.key, before, after, certain)
	}
}

// showWrite makes a version that the operator has written the one that handlers see.
func (b *background) showWrite(written *object.Body) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seesWrites {
		b.show(written.Snapshot())
	}
}

// CanCall reports whether a call may begin: a process that was frozen does not know at once that another one has its
// shards.
func (b *background) CanCall() bool {
	e := b.engine
	if !e.isSharded() {
		return true
	}
	t := e.tenures.of(b.key.Namespace, b.uid)
	return t != nil && !t.isOver()
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

// Write hands an edit to a pass, and waits for the outcome.
func (b *background) Write(ctx context.Context, d *handler.Declaration, edit call.Edit) (ended bool, err error) {
	h := &handedIn{ended: make(chan struct{})}
	h.unseen = func(why error) {
		b.Warn(d, daemons.ReasonWriteRejected, fmt.Sprintf("The edit of the handler %s was rejected: %s", d.ID, why))
	}
	edit.Refused = h.refuse
	edit.Done = h.end
	b.mu.Lock()
	b.seesWrites = true
	b.mu.Unlock()
	if !b.addEdit(edit) {
		return true, handler.ErrGone
	}
	b.engine.enqueue(b.key)
	ended, refusal := h.wait(ctx)
	switch {
	case !ended:
		return false, fmt.Errorf("the write of the daemon %s has not ended, and goes on: %w", d.ID, context.Cause(ctx))
	case refusal == nil || errors.Is(refusal, handler.ErrGone):
		return true, refusal
	default:
		return true, &handler.WriteError{ID: d.ID, Resource: b.key.Resource, Name: b.key.NamespacedName, Err: refusal}
	}
}

// handedIn is an edit that a daemon waits for.
type handedIn struct {
	ended  chan struct{}
	unseen func(why error) // reports a refusal that the daemon does not see

	mu      sync.Mutex
	refusal error
	left    bool // the daemon does not wait anymore
}

func (h *handedIn) refuse(why error) {
	h.mu.Lock()
	h.refusal = why
	left := h.left
	h.mu.Unlock()
	if left && !errors.Is(why, handler.ErrGone) {
		h.unseen(why)
	}
}

func (h *handedIn) end() { close(h.ended) }

// wait returns whether the edit has ended, and why it was refused. If it has not ended, the daemon has left.
func (h *handedIn) wait(ctx context.Context) (ended bool, refusal error) {
	select {
	case <-h.ended:
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refusal != nil {
		return true, h.refusal
	}
	select {
	case <-h.ended:
		return true, nil
	default:
		h.left = true
		return false, nil
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
		edit.Refuse(handler.ErrGone)
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
func (b *background) LastRun(ctx context.Context, d *handler.Declaration) (storage.Record, error) {
	return b.engine.records.LastRun(ctx, b.live(), d.ID, b.reporter())
}

// PutRun stores the end of a run, unless a later one is stored when it is written: of another process that handles the
// object at the same time. A storage elsewhere must keep nothing of an object that is gone.
func (b *background) PutRun(ctx context.Context, d *handler.Declaration, run storage.Record, into *patch.Patch) error {
	if b.engine.storesElsewhere && !b.resource.Has(b.key.NamespacedName, b.uid) {
		return nil
	}
	merge := storage.Patch{}
	err := b.engine.records.Storages.Progress.Store(ctx, b.live(), merge, record.RunOf(d.ID), &run)
	if b.engine.storesElsewhere {
		into.Merge(merge)
		return err
	}
	into.Apply(func(now *unstructured.Unstructured) error {
		known, err := b.engine.records.Record(ctx, object.NewBody(now.Object), record.RunOf(d.ID), b.reporter())
		if err == nil && (known == nil || !known.Started.After(run.Started)) {
			now.Object = patch.ApplyMerge(now.Object, merge)
		}
		return err
	})
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

// ReportRun reports the success of a run.
func (b *background) ReportRun(d *handler.Declaration, run time.Time) { b.reporter().Ran(d.ID, run) }

// ReportUnscheduled reports that the next run of a timer is unknown.
func (b *background) ReportUnscheduled(d *handler.Declaration, err error, delay time.Duration) {
	b.reporter().Unscheduled(b.live(), d.ID, err, delay)
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
func (b *background) areDaemonsRunning() bool { return b != nil && b.group.HoldsObject() }

// Identity returns the object, also after another one has its name.
func (b *background) Identity() daemons.Identity {
	return daemons.Identity{Resource: b.key.Resource, UID: b.uid}
}

// stopBackgroundOfDeleted stops the daemons and timers of an object that is being
// deleted, except those that run until it is gone.
func (p *pass) stopBackgroundOfDeleted() {
	if b := p.object.background; b != nil && p.session.Body().Deleting() {
		b.requeueRequested.Store(false)
		if p.resource.outlastsDeletion {
			b.group.BeginDeletion()
		} else {
			b.group.Stop(stop.Deleted)
		}
	}
}

// syncBackground starts and stops daemons and timers to match the current object.
func (p *pass) syncBackground(c *cycle) error {
	if c.Deleting && !p.resource.outlastsDeletion || p.term.tenure.isOver() {
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
