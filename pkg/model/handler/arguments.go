package handler

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Arguments is what filters see, whatever the kind of handler: the object and
// the circumstances. Where a kind has no such thing (an event handler has no
// old state), the value is the zero one.
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
	Reason() cause.Reason
	Old() object.Value
	New() object.Value
	Diff() diff.Diff
}

// CallContext is the object at hand and the means to work on it: the part of the
// arguments that all kinds of handlers share. The engine fills it.
type CallContext struct {
	Body *object.Body
	// Live replaces the body, if it is there: every look sees the object as it is
	// by then. It is safe for concurrent use.
	Live  func() *object.Body
	Patch *patch.Patch
	// Resource is shared by all calls: it is larger than all the rest. Nil: unknown.
	Resource *selector.Resource
	Logger   logr.Logger
	Client   client.Client
	// Memo is what is kept in memory of the object. It is asked for only if a
	// handler does; nil: nothing is kept.
	Memo func() *memo.Values
}

func (s *CallContext) body() *object.Body {
	if s.Live != nil {
		return s.Live()
	}
	return s.Body
}

// common is what handlers get that may change the object.
type writable struct{ readOnly }

// newWritable makes the part of the arguments that these handlers share.
func newWritable(s CallContext, param any) writable { return writable{readOnly{s, param}} }

// Patch collects changes of the object. They are sent together with the
// operator's own bookkeeping after the handler has returned.
func (c *writable) Patch() *patch.Patch { return c.call.Patch }

// Client talks to the cluster, in the operator's name. Unless the operator was
// added to a manager that caches, it reads live.
func (c *writable) Client() client.Client { return c.call.Client }

// Attempt is how far a handler is with its work.
type Attempt struct {
	Retry   int       // how often it was tried before: 0 on the first attempt
	Started time.Time // the first attempt
	Now     time.Time // this attempt
}

// tried answers for the attempt; the arguments of all kinds that are retried embed
// it.
type attemptInfo struct{ attempt Attempt }

// Retry tells how often the handler was tried before: 0 on the first attempt, and
// on the first one after a success.
func (t *attemptInfo) Retry() int { return t.attempt.Retry }

// Started is the time of the first attempt.
func (t *attemptInfo) Started() time.Time { return t.attempt.Started }

// Runtime is the time since the first attempt, until this one.
func (t *attemptInfo) Runtime() time.Duration { return t.attempt.Now.Sub(t.attempt.Started) }

// resulting takes the result; the arguments of all kinds that have one embed it.
type resultHolder struct{ result any }

// SetResult stores a value under status.<handler id> when the handler succeeds.
// It must be expressible as JSON; nil stores nothing.
//
// Specification: Results delivery.
func (r *resultHolder) SetResult(value any) { r.result = value }

// Result is what SetResult was given last.
func (r *resultHolder) Result() any { return r.result }

// Transition is what has happened to the object, or to the handler's field.
type Transition struct {
	Reason cause.Reason
	Old    object.Value
	New    object.Value
	Diff   diff.Diff
	// OldEssence is that of the whole object, for handlers of fields too.
	OldEssence object.Essence
}

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
