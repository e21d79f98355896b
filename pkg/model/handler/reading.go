package handler

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// reading is the object as it is, without the means to change it, and nothing of
// what it was. Every kind of arguments embeds it; for filters of the kinds that
// are not called for a change it is all there is.
type readOnly struct {
	call  CallContext
	param any
}

var _ Arguments = (*readOnly)(nil)

// Body is the object as it is now: for daemons and timers at the time of asking,
// for all others at the time of the call.
func (r *readOnly) Body() *object.Body { return r.call.body() }

// Spec is the part of the object that its users write.
func (r *readOnly) Spec() object.View { return r.call.body().Spec() }

// Status is the part of the object that its operators write.
func (r *readOnly) Status() object.View { return r.call.body().Status() }

// Meta is the object's metadata.
func (r *readOnly) Meta() object.View { return r.call.body().Meta() }

// Name is the object's name.
func (r *readOnly) Name() string { return r.call.body().Name() }

// Namespace is the object's namespace; empty for a cluster-scoped object.
func (r *readOnly) Namespace() string { return r.call.body().Namespace() }

// UID is the object's uid.
func (r *readOnly) UID() types.UID { return r.call.body().UID() }

// Labels are the object's labels, never nil.
func (r *readOnly) Labels() map[string]string { return r.call.body().Labels() }

// Annotations are the object's annotations, never nil.
func (r *readOnly) Annotations() map[string]string { return r.call.body().Annotations() }

// Resource is the actual resource of the object, as the cluster serves it.
func (r *readOnly) Resource() selector.Resource {
	if r.call.Resource == nil {
		return selector.Resource{}
	}
	return *r.call.Resource
}

// Param is the value of the option of the same name; nil without it.
func (r *readOnly) Param() any { return r.param }

// Logger logs with the object and the handler in every line. What a handler logs is
// also an event of the object, by settings.Posting; log.FromContext is the same logger.
//
// Specification: Arguments, "Logging".
func (r *readOnly) Logger() logr.Logger { return r.call.Logger }

// Memo is what is kept in memory of the object, for all its handlers, as long as
// the object and the operator live. A memo.Memo finds its value in it.
//
// Specification: In-memory containers.
func (r *readOnly) Memo() *memo.Values {
	if r.call.Memo == nil {
		return nil
	}
	return r.call.Memo()
}

// Reason is empty: the handler is not called because something has happened.
func (r *readOnly) Reason() cause.Reason { return "" }

// Old is absent: there is no old state.
func (r *readOnly) Old() object.Value { return object.Value{} }

// New is the object as it is now.
func (r *readOnly) New() object.Value { return object.NewValue(r.Body().Raw()) }

// Diff is empty.
func (r *readOnly) Diff() diff.Diff { return nil }
