package converge

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/tracing"
)

// traced makes a span for each write to a child. It does not count reads and dry runs. Its parent is that
// of the handler that wants the child.
type traced struct {
	API
	tracer tracing.Tracer
}

func (t traced) Apply(ctx context.Context, r selector.Resource, content map[string]any) (*unstructured.Unstructured, error) {
	u := unstructured.Unstructured{Object: content}
	ctx, end := t.start(ctx, "apply", r, Key{Namespace: u.GetNamespace(), Name: u.GetName()})
	applied, err := t.API.Apply(ctx, r, content)
	end(resultOf(err))
	return applied, err
}

func (t traced) Rename(ctx context.Context, r selector.Resource, child Key, patch []byte) (*unstructured.Unstructured, error) {
	ctx, end := t.start(ctx, "rename", r, child)
	renamed, err := t.API.Rename(ctx, r, child, patch)
	end(resultOf(err))
	return renamed, err
}

func (t traced) Delete(ctx context.Context, r selector.Resource, child *fact) error {
	ctx, end := t.start(ctx, "delete", r, child.Key)
	err := t.API.Delete(ctx, r, child)
	end(resultOf(err))
	return err
}

func (t traced) start(ctx context.Context, reason string, r selector.Resource, child Key) (context.Context, func(tracing.Result)) {
	return t.tracer.Start(ctx, tracing.Span{
		Kind: tracing.Write, Reason: reason, Resource: r.String(), Namespace: child.Namespace, Name: child.Name,
	})
}

func resultOf(err error) tracing.Result {
	switch {
	case err == nil:
		return tracing.Result{Outcome: "written"}
	case apierrors.IsConflict(err):
		return tracing.Result{Outcome: "conflict", Err: err}
	case isRefused(err):
		return tracing.Result{Outcome: "rejected", Err: err}
	default:
		return tracing.Result{Outcome: "failed", Err: err}
	}
}
