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
type reading struct {
	subject Subject
	param   any
}

var _ Arguments = (*reading)(nil)

// Body is the object as it is now: for daemons and timers at the time of asking,
// for all others at the time of the call.
func (r *reading) Body() *object.Body { return r.subject.body() }

// Spec is the part of the object that its users write.
func (r *reading) Spec() object.View { return r.subject.body().Spec() }

// Status is the part of the object that its operators write.
func (r *reading) Status() object.View { return r.subject.body().Status() }

// Meta is the object's metadata.
func (r *reading) Meta() object.View { return r.subject.body().Meta() }

// Name is the object's name.
func (r *reading) Name() string { return r.subject.body().Name() }

// Namespace is the object's namespace; empty for a cluster-scoped object.
func (r *reading) Namespace() string { return r.subject.body().Namespace() }

// UID is the object's uid.
func (r *reading) UID() types.UID { return r.subject.body().UID() }

// Labels are the object's labels, never nil.
func (r *reading) Labels() map[string]string { return r.subject.body().Labels() }

// Annotations are the object's annotations, never nil.
func (r *reading) Annotations() map[string]string { return r.subject.body().Annotations() }

// Resource is the actual resource of the object, as the cluster serves it.
func (r *reading) Resource() selector.Resource {
	if r.subject.Resource == nil {
		return selector.Resource{}
	}
	return *r.subject.Resource
}

// Param is the value of the option of the same name; nil without it.
func (r *reading) Param() any { return r.param }

// Logger logs with the object and the handler in every line. What a handler logs is
// also an event of the object, by settings.Posting; log.FromContext is the same logger.
//
// Specification: Arguments, "Logging".
func (r *reading) Logger() logr.Logger { return r.subject.Logger }

// Memo is what is kept in memory of the object, for all its handlers, as long as
// the object and the operator live. A memo.Memo finds its value in it.
//
// Specification: In-memory containers.
func (r *reading) Memo() *memo.Values {
	if r.subject.Memo == nil {
		return nil
	}
	return r.subject.Memo()
}

// Reason is empty: the handler is not called because something has happened.
func (r *reading) Reason() cause.Reason { return "" }

// Old is absent: there is no old state.
func (r *reading) Old() object.Value { return object.Value{} }

// New is the object as it is now.
func (r *reading) New() object.Value { return object.NewValue(r.Body().Raw()) }

// Diff is empty.
func (r *reading) Diff() diff.Diff { return nil }
