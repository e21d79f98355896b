package daemons

import (
	"context"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// attention is what a running daemon has only if it looks at something, or writes before it returns.
type attention struct {
	changed   chan struct{} // has a value if something has changed; nil if it looks at nothing
	unfollow  func()
	unwritten bool // an edit may still have to be written that the daemon has not waited for
}

// beginAttention begins to follow what the daemon looks at, before the daemon sees any of it: so no change is lost.
func (r *run) beginAttention() {
	if !r.worker.handler.LooksAtSomething() {
		return
	}
	changed := make(chan struct{}, 1)
	unfollow := r.worker.group.currentHost().Follow(r.worker.handler, func() {
		select {
		case changed <- struct{}{}:
		default: // the daemon has not looked since the last change
		}
	})
	r.attention = &attention{changed: changed, unfollow: unfollow}
}

// endAttention is the opposite of beginAttention.
func (r *run) endAttention() {
	if r.attention != nil && r.attention.unfollow != nil {
		r.attention.unfollow()
	}
}

// Stopper implements handler.Background.
func (r *run) Stopper() *handler.Stopper { return r.stopper }

// Done implements handler.Background. A timer that waits does not end with its context.
func (r *run) Done() <-chan struct{} {
	if r.ctx == nil || !r.worker.isDaemon() {
		return nil
	}
	return r.ctx.Done()
}

// Changed implements handler.Background.
func (r *run) Changed() <-chan struct{} {
	if r.attention == nil {
		return nil
	}
	return r.attention.changed
}

// Children implements handler.Background.
func (r *run) Children() []*object.Snapshot {
	if len(r.worker.handler.Owned) == 0 {
		return nil
	}
	return r.worker.group.currentHost().Children(r.worker.handler)
}

// Write implements handler.Background. What it hands in is written also if it does not wait for that, because its
// context is done: at the latest, the daemon waits for it when it has returned.
func (r *run) Write(ctx context.Context, result any, edit *patch.Patch) error {
	normalized, err := call.NormalizeResult(result)
	if err != nil {
		return err
	}
	if normalized == nil && edit.Empty() {
		return nil
	}
	s := r.worker.group.supervisor
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.writeCtx, func() { cancel(errStopped) })()
	written, err := r.worker.group.currentHost().Write(ctx, r.worker.handler, call.Edit{ID: r.worker.handler.ID, Result: normalized, Patch: edit})
	if !written {
		if r.attention == nil {
			r.attention = &attention{}
		}
		r.attention.unwritten = true
	}
	return err
}

// hasUnwritten reports whether an edit may still have to be written that the daemon has not waited for.
func (r *run) hasUnwritten() bool { return r.attention != nil && r.attention.unwritten }
