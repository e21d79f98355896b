package handler

import (
	"errors"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/condition"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Arguments is the interface that filters see for all kinds of handlers: the object and
// its circumstances. Values that a kind does not have are zero: for example, an event
// handler has no old state.
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

// CallContext contains the current object and the means to work on it: the arguments
// that all kinds of handlers share. The engine fills it.
type CallContext struct {
	Body *object.Body
	// Live replaces the body if it is set: every call returns the current object. It is safe
	// for concurrent use.
	Live  func() *object.Body
	Patch *patch.Patch
	// Resource is shared by all calls because of its size. Nil means unknown.
	Resource *selector.Resource
	Logger   logr.Logger
	Client   client.Client
	// Memo returns the object's values in memory. It is called only if a handler uses them.
	// Nil means that values cannot be kept.
	Memo func() *memo.Values
	// Converger makes the children of the object what they should be. It is set only for calls
	// of handlers that return children.
	Converger Converger
}

func (s *CallContext) body() *object.Body {
	if s.Live != nil {
		return s.Live()
	}
	return s.Body
}

// writable contains the arguments of handlers that can change the object.
type writable struct{ readOnly }

// newWritable returns the arguments that these handlers share.
func newWritable(s CallContext, param any) writable { return writable{readOnly{s, param}} }

// Patch returns the patch for changes of the object. The operator writes them together
// with its own records after the handler has returned.
func (c *writable) Patch() *patch.Patch { return c.call.Patch }

// Client returns a client of the cluster with the operator's permissions. It reads
// directly from the API server, unless the operator was added to a manager with a cache.
func (c *writable) Client() client.Client { return c.call.Client }

// SetCondition adds a condition to status.conditions when the patch is written, or replaces the
// one of the same type; all others stay. The type, the status, and the reason are required, or
// the handler fails permanently. The time of the transition is now if the status of the
// condition changes, and stays otherwise. The observed generation is that of the object as the
// handler sees it, unless it is set.
//
// If kopf.Conditions is declared for the resource, the operator itself writes Ready,
// Reconciling, and Stalled, and its values win.
func (c *writable) SetCondition(wanted metav1.Condition) {
	now := time.Now()
	if wanted.ObservedGeneration == 0 {
		wanted.ObservedGeneration = c.call.body().Generation()
	}
	invalid := condition.Validate(wanted)
	c.Patch().Apply(func(u *unstructured.Unstructured) error {
		if err := errors.Join(invalid, condition.Set(u.Object, wanted, now)); err != nil {
			return Permanent(err)
		}
		return nil
	})
}

// Attempt identifies an attempt of a handler.
type Attempt struct {
	Retry   int       // number of earlier attempts: 0 for the first attempt
	Started time.Time // time of the first attempt
	Now     time.Time // time of this attempt
}

// attemptInfo provides the attempt. The arguments of all retried kinds embed it.
type attemptInfo struct{ attempt Attempt }

// Retry returns the number of earlier attempts: 0 for the first attempt, and for the
// first one after a success.
func (t *attemptInfo) Retry() int { return t.attempt.Retry }

// Started returns the time of the first attempt.
func (t *attemptInfo) Started() time.Time { return t.attempt.Started }

// Runtime returns the time from the first attempt to this one. It is zero if the clock says that the
// first one is yet to come: it has stepped back, or that of the former process was ahead.
func (t *attemptInfo) Runtime() time.Duration {
	return max(0, t.attempt.Now.Sub(t.attempt.Started))
}

// resultHolder stores the result. The arguments of all kinds with results embed it.
type resultHolder struct{ result any }

// SetResult stores a value under status.<handler id> when the handler succeeds. The
// value must be expressible as JSON. Nil stores nothing.
//
// Specification: Results delivery.
func (r *resultHolder) SetResult(value any) { r.result = value }

// Result returns the last value of SetResult.
func (r *resultHolder) Result() any { return r.result }

// Transition is the change of the object or of the handler's field.
type Transition struct {
	Reason cause.Reason
	Old    object.Value
	New    object.Value
	Diff   diff.Diff
	// OldEssence is the essence of the entire object, also for handlers of fields.
	OldEssence object.Essence
}

// readOnly provides the current object without the means to change it, and without
// earlier states. The arguments of all kinds embed it. Filters of kinds that are not
// called for a change see only this.
type readOnly struct {
	call  CallContext
	param any
}

var _ Arguments = (*readOnly)(nil)

// Body returns the object: the current one for daemons and timers, and the one at the
// time of the call for all others.
func (r *readOnly) Body() *object.Body { return r.call.body() }

// Spec returns the object's spec, which its users write.
func (r *readOnly) Spec() object.View { return r.call.body().Spec() }

// Status returns the object's status, which its operators write.
func (r *readOnly) Status() object.View { return r.call.body().Status() }

// Meta returns the object's metadata.
func (r *readOnly) Meta() object.View { return r.call.body().Meta() }

// Name returns the object's name.
func (r *readOnly) Name() string { return r.call.body().Name() }

// Namespace returns the object's namespace, which is empty for a cluster-scoped object.
func (r *readOnly) Namespace() string { return r.call.body().Namespace() }

// UID returns the object's uid.
func (r *readOnly) UID() types.UID { return r.call.body().UID() }

// Labels returns a copy of the object's labels, which is never nil.
func (r *readOnly) Labels() map[string]string { return r.call.body().Labels() }

// Annotations returns a copy of the object's annotations, which is never nil.
func (r *readOnly) Annotations() map[string]string { return r.call.body().Annotations() }

// Resource returns the actual resource of the object in the cluster.
func (r *readOnly) Resource() selector.Resource {
	if r.call.Resource == nil {
		return selector.Resource{}
	}
	return *r.call.Resource
}

// Param returns the value of the option Param, or nil without it.
func (r *readOnly) Param() any { return r.param }

// Logger returns a logger that adds the object and the handler to every line. Depending
// on settings.Posting, its lines are also posted as events of the object.
// log.FromContext returns the same logger.
//
// Specification: Arguments, "Logging".
func (r *readOnly) Logger() logr.Logger { return r.call.Logger }

// Memo returns the object's values in memory. All handlers of the object share them as
// long as the object and the operator live. Use a memo.Memo to get its value.
//
// Specification: In-memory containers.
func (r *readOnly) Memo() *memo.Values {
	if r.call.Memo == nil {
		return nil
	}
	return r.call.Memo()
}

// Reason returns "", because the handler is not called for a change.
func (r *readOnly) Reason() cause.Reason { return "" }

// Old returns an absent value, because there is no old state.
func (r *readOnly) Old() object.Value { return object.Value{} }

// New returns the current object.
func (r *readOnly) New() object.Value { return object.NewValue(r.Body().Raw()) }

// Diff returns an empty difference.
func (r *readOnly) Diff() diff.Diff { return nil }
