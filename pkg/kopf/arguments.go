package kopf

import (
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Arguments has what the arguments of all handlers of objects have in common: the object, and
// what has happened to it. Filters get it. Values that a kind of handler does not have are zero: an
// event handler has no old state, for example.
//
// Specification: Arguments.
type Arguments interface {
	Body() *object.Body
	Spec() object.View
	Status() object.View
	Meta() object.View
	Name() string
	Namespace() string
	UID() types.UID
	Labels() map[string]string
	Annotations() map[string]string
	Resource() selector.Resource
	Param() any
	Memo() *memo.Values
	Logger() logr.Logger
	Reason() Reason
	Old() object.Value
	New() object.Value
	Diff() diff.Diff
}

// Reason names what has happened to an object.
type Reason = cause.Reason

// The reasons why a handler is called.
const (
	ReasonCreate = cause.Create
	ReasonUpdate = cause.Update
	ReasonDelete = cause.Delete
	ReasonResume = cause.Resume
)

// The arguments of each kind of handlers embed some of the following types, next to each other: go doc
// shows only the methods of types that are embedded directly.

// reading provides the object without the means to change it.
type reading struct{ call *handler.Call }

var _ Arguments = reading{}

// Body returns the object: the current one for daemons and timers, and the one at the
// time of the call for all others.
func (r reading) Body() *object.Body { return r.call.Body() }

// Spec returns the object's spec, which its users write.
func (r reading) Spec() object.View { return r.call.Body().Spec() }

// Status returns the object's status, which its operators write.
func (r reading) Status() object.View { return r.call.Body().Status() }

// Meta returns the object's metadata.
func (r reading) Meta() object.View { return r.call.Body().Meta() }

// Name returns the object's name. For admission handlers, it is empty until a generated name is
// known.
func (r reading) Name() string { return r.call.Name() }

// Namespace returns the object's namespace, which is empty for a cluster-scoped object.
func (r reading) Namespace() string { return r.call.Namespace() }

// UID returns the object's uid.
func (r reading) UID() types.UID { return r.call.Body().UID() }

// Labels returns a copy of the object's labels, which is never nil.
func (r reading) Labels() map[string]string { return r.call.Body().Labels() }

// Annotations returns a copy of the object's annotations, which is never nil.
func (r reading) Annotations() map[string]string { return r.call.Body().Annotations() }

// Resource returns the actual resource of the object in the cluster.
func (r reading) Resource() selector.Resource { return r.call.Resource() }

// Param returns the value of the option Param, or nil without it.
func (r reading) Param() any { return r.call.Param() }

// Logger returns a logger that adds the object and the handler to every line. Depending
// on settings.Posting, its lines are also posted as events of the object.
// log.FromContext returns the same logger.
//
// Specification: Arguments, "Logging".
func (r reading) Logger() logr.Logger { return r.call.Context.Logger }

// Memo returns the object's values in memory. All handlers of the object share them as
// long as the object and the operator live. Use a memo.Memo to get its value.
//
// Specification: In-memory containers.
func (r reading) Memo() *memo.Values { return r.call.Memo() }

// Reason returns what has happened to the object. It is empty for handlers that are not called
// for a change. It is useful if one function is declared for several reasons.
func (r reading) Reason() Reason { return r.call.Reason() }

// Old returns the essence that was last handled, or the handler's field in it. It is absent for
// handlers that are not called for a change.
func (r reading) Old() object.Value { return r.call.Transition().Old }

// New returns the current essence, or the handler's field in it. For handlers that are not called
// for a change, it is the current object.
func (r reading) New() object.Value { return r.call.Transition().New }

// Diff returns the difference from Old to New, relative to the handler's field if it has
// one. It is empty for handlers that are not called for a change.
func (r reading) Diff() diff.Diff { return r.call.Transition().Diff }

// Decode decodes the object, as Body returns it, into a pointer to a Go type. If the object does not fit the
// type, it returns a MisfitError. A handler can return that error: the call does not count as an
// attempt, and the handler is called again when the object fits.
func (r reading) Decode(into any) error { return handler.DecodeObject(r.call.Body().Raw(), into) }

// writing provides the means to change the object.
type writing struct{ call *handler.Call }

// Patch returns the patch for changes of the object. The operator writes them together
// with its own records after the handler has returned.
func (w writing) Patch() *patch.Patch { return w.call.Context.Patch }

// Client returns a client of the cluster with the operator's permissions. It reads
// directly from the API server, unless the operator was added to a manager with a cache.
func (w writing) Client() client.Client { return w.call.Context.Client }

// SetCondition adds a condition to status.conditions when the patch is written, or replaces the
// one of the same type; all others stay. The type, the status, and the reason are required, or
// the handler fails permanently. The time of the transition is now if the status of the
// condition changes, and stays otherwise. The observed generation is that of the object as the
// handler sees it, unless it is set.
//
// If kopf.Conditions is declared for the resource, the operator itself writes Ready,
// Reconciling, and Stalled, and its values win.
func (w writing) SetCondition(wanted metav1.Condition) { w.call.SetCondition(wanted) }

// retrying provides the attempt of a handler.
type retrying struct{ call *handler.Call }

// Retry returns the number of earlier attempts: 0 for the first attempt, and for the
// first one after a success.
func (r retrying) Retry() int { return r.call.Attempt.Retry }

// Started returns the time of the first attempt.
func (r retrying) Started() time.Time { return r.call.Attempt.Started }

// Runtime returns the time from the first attempt to this one. It is zero if the clock says that the
// first one is yet to come: it has stepped back, or that of the former process was ahead.
func (r retrying) Runtime() time.Duration { return r.call.Runtime() }

// answering provides the result of a handler.
type answering struct{ call *handler.Call }

// SetResult stores a value under status.<handler id> when the handler succeeds. The
// value must be expressible as JSON. Nil stores nothing.
//
// Specification: Results delivery.
func (a answering) SetResult(value any) { a.call.SetResult(value) }

// Result returns the last value of SetResult.
func (a answering) Result() any { return a.call.Result() }

// argumentsOf returns what filters and other functions about a handler see: the arguments of its
// kind.
func argumentsOf(c *handler.Call) Arguments {
	if c == nil { // a test asks a matcher about a value alone
		return nil
	}
	switch kind := c.Declaration.Kind; {
	case kind.IsChange():
		return changeOf(c)
	case kind.IsAdmission():
		return admissionOf(c)
	case kind == handler.OnEvent:
		return eventOf(c)
	case kind == handler.OnDaemon:
		return taskOf(c)
	case kind == handler.OnTimer:
		return tickOf(c)
	default:
		return reading{c}
	}
}
