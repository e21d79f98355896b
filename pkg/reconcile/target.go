package reconcile

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// target is the object of a pass, with its context.
type target struct {
	engine   *Engine
	resource *resource
	key      object.Key
	object   *objectState
	report   report.Reporter
}

// resetFor resets the state for an object that has replaced another one. The memos of the
// old object are dropped after its event handlers were called for the deletion.
func (t *target) resetFor(uid types.UID) {
	if former := t.object.writes.UID(); former != uid && len(t.resource.events) == 0 {
		t.object.dropMemos(former)
	}
	t.object.resetFor(uid)
}

// isAtRest reports whether nothing has happened to the object since the last pass, which has
// left nothing to do.
func (t *target) isAtRest(cached *object.Snapshot) bool {
	if cached == nil {
		return false
	}
	t.resetFor(cached.GetUID())
	isTriggered := len(t.resource.Triggered) > 0 && t.engine.objects.triggers.IsPending(t.key)
	return t.object.isReconciledAt(cached.GetResourceVersion()) && !isTriggered && !t.engine.revisions.IsPending(t.resource.Revised, t.key)
}

// prepareCall returns the context and the arguments for one call of a handler.
func (t *target) prepareCall(ctx context.Context, d *handler.Declaration, body *object.Body) (context.Context, handler.CallContext) {
	call := t.callArguments(body)
	ctx, call.Logger = t.engine.callContext(ctx, t.resource, t.key, func() *object.Body { return body }, d)
	return ctx, call
}

// callArguments returns the arguments that all kinds of handlers share.
func (t *target) callArguments(body *object.Body) handler.CallContext {
	return handler.CallContext{
		Body: body, Resource: &t.resource.Resource.Resource, Logger: t.report.Log, Client: t.engine.Client,
		Memo: func() *memo.Values { return t.object.memosOf(body.UID(), t.engine.Memos) },
	}
}

// objectRef identifies an object in log lines. It is resolved only when a line is written,
// because most lines are not.
type objectRef struct {
	engine *Engine
	key    object.Key
	// body returns the object as it was seen last, or nil. It can be gone from the watch.
	body func() *object.Body
}

var _ logr.Marshaler = objectRef{}

// MarshalLog returns a reference to the object, without the uid if that is not known.
func (r objectRef) MarshalLog() any {
	about := corev1.ObjectReference{Namespace: r.key.Namespace, Name: r.key.Name}
	found := r.engine.resources.get(r.key.Resource)
	if found == nil {
		return about
	}
	about.APIVersion, about.Kind = found.GVK().ToAPIVersionAndKind()
	if body := r.body(); body != nil {
		about.UID = body.UID()
	} else if snapshot := found.Cached(r.key.NamespacedName); snapshot != nil {
		about.UID = snapshot.GetUID()
	}
	return about
}
