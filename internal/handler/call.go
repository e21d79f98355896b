package handler

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/condition"
	"github.com/kopf-go/kopf/internal/function"
	"github.com/kopf-go/kopf/internal/isolate"
	"github.com/kopf-go/kopf/internal/recomputed"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

// CallContext contains the current object and the means to work on it. The engine fills it.
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

// Attempt identifies an attempt of a handler.
type Attempt struct {
	Retry   int       // number of earlier attempts: 0 for the first attempt
	Started time.Time // time of the first attempt
	Now     time.Time // time of this attempt
}

// Call is one call of a user's function: the object, what has happened to it, and the means to
// work on it. Package kopf presents it to the function by the type for its kind, such as
// kopf.Change. Filters get a Call, too, which belongs to no attempt.
//
// What only some kinds have is nil for the others. A Call belongs to the goroutine of the
// function, except the patch, which can be shared.
type Call struct {
	Context     CallContext
	Declaration *Declaration
	Attempt     Attempt

	Event  watch.EventType // of a watch event; empty for the initial list
	Review *Review         // of the API server
	Run    *time.Time      // of a timer with a schedule: the time that the call is for
	Child  *ChildCall      // of a child, or of all children
	Drift  *DriftCall      // of what others have changed in a child

	// Failures contains why others have failed that a handler of changes follows, by the ids that it declares.
	Failures   map[string]string
	Background Background // of a daemon or a timer

	Operator *Operator // of an activity, which has no object

	change *change // of the object, or of the child
	result any
}

// Operator provides the data of an activity. The engine fills it.
type Operator struct {
	Logger logr.Logger
	// Client is called only if a handler uses the client. Nil means that there is none.
	Client func() client.Client
	Memo   *memo.Values
}

// change describes what has happened, and contains what only handlers of changes can do.
type change struct {
	reason      cause.Reason
	difference  difference
	subhandlers Subhandlers
	misfit      *MisfitError // set if the handler is called nevertheless
}

// difference is computed when it is first used, and kept as long as there is memory for it.
type difference struct {
	compute func() Transition
	kept    recomputed.Value[Transition]
}

// Transition is the change of the object or of the handler's field.
type Transition struct {
	Reason cause.Reason
	Old    object.Value
	New    object.Value
	Diff   diff.Diff
	// OldEssence is the essence of the entire object, also for handlers of fields.
	OldEssence object.Essence
}

// Subhandlers registers the sub-handlers of one call of a handler. The engine implements
// it.
type Subhandlers interface {
	Register(d *Declaration, err error)
	Execute(ctx context.Context) error
}

// NewCall returns a call of a handler that is not called for a change.
func NewCall(d *Declaration, s CallContext, a Attempt) *Call {
	return &Call{Declaration: d, Context: s, Attempt: a}
}

// NewChange returns a call of a handler of changes. The function returns a cause with Old, New,
// and Diff. It is called when they are used, so that they need not be kept while the handler
// waits, and must always return the same. It must be safe for concurrent use.
func NewChange(d *Declaration, s CallContext, a Attempt, subhandlers Subhandlers, reason cause.Reason, essences func() *Cause) *Call {
	c := NewCall(d, s, a)
	c.change = &change{reason: reason, subhandlers: subhandlers}
	c.change.difference.compute = func() Transition { return d.Transition(essences()) }
	return c
}

// NewActivity returns a call of a handler of the operator itself.
func NewActivity(d *Declaration, o Operator, a Attempt) *Call {
	return &Call{Declaration: d, Operator: &o, Attempt: a}
}

// Body returns the object: the current one for daemons and timers, and the one at the time of
// the call for all others.
func (c *Call) Body() *object.Body { return c.Context.body() }

// Name returns the object's name. For a review, it is empty until a generated name is known.
func (c *Call) Name() string {
	if c.Review != nil {
		return cmp.Or(c.Body().Name(), c.Review.Name)
	}
	return c.Body().Name()
}

// Namespace returns the object's namespace, which is empty for a cluster-scoped object.
func (c *Call) Namespace() string {
	if c.Review != nil {
		return cmp.Or(c.Body().Namespace(), c.Review.Namespace)
	}
	return c.Body().Namespace()
}

// Param returns the value of the option Param, or nil without it.
func (c *Call) Param() any { return c.Declaration.Param }

// Resource returns the resource of the object, which is empty if it is unknown.
func (c *Call) Resource() selector.Resource {
	if c.Context.Resource == nil {
		return selector.Resource{}
	}
	return *c.Context.Resource
}

// Memo returns the object's values in memory, or nil if they cannot be kept.
func (c *Call) Memo() *memo.Values {
	if c.Context.Memo == nil {
		return nil
	}
	return c.Context.Memo()
}

// Runtime returns the time from the first attempt to this one. It is zero if the clock says that the
// first one is yet to come: it has stepped back, or that of the former process was ahead.
func (c *Call) Runtime() time.Duration { return max(0, c.Attempt.Now.Sub(c.Attempt.Started)) }

// SetResult stores the result of the handler. Result returns the last one.
func (c *Call) SetResult(value any) { c.result = value }

// Result returns the last value of SetResult.
func (c *Call) Result() any { return c.result }

// Reason returns what has happened to the object, to the child, or to the object under review. It
// is empty for handlers that are not called for a change.
func (c *Call) Reason() cause.Reason {
	switch {
	case c.Review != nil:
		return c.Review.changeReason()
	case c.change != nil:
		return c.change.reason
	default:
		return ""
	}
}

// Transition returns what has changed, as of the time of the call. Without a change, it has the
// current object alone.
func (c *Call) Transition() Transition {
	switch {
	case c.Review != nil:
		return c.Review.transition(c.Declaration.Field)
	case c.change != nil:
		difference := &c.change.difference
		return *difference.kept.Get(difference.compute)
	default:
		return Transition{New: object.NewValue(c.Body().Raw())}
	}
}

// OldEssence returns the essence of the entire object that was last handled. It returns nil if
// there is none or if it is unknown.
func (c *Call) OldEssence() object.Essence {
	if essence := c.Transition().OldEssence; object.NewValue(essence).Known() {
		return essence
	}
	return nil
}

// Misfit returns why the object does not fit the Go type of the handler, which is called
// nevertheless, or nil.
func (c *Call) Misfit() *MisfitError {
	if c.change == nil {
		return nil
	}
	return c.change.misfit
}

// IsUntyped reports whether the handler is called although the object does not fit its Go type.
func (c *Call) IsUntyped() bool { return c.Misfit() != nil }

// Register registers a sub-handler of the call, or a mistake in its declaration.
func (c *Call) Register(d *Declaration, err error) { c.change.subhandlers.Register(d, err) }

// Execute calls the registered sub-handlers.
func (c *Call) Execute(ctx context.Context) error { return c.change.subhandlers.Execute(ctx) }

// SetCondition adds a condition to the status, or replaces the one of the same type, when the
// patch is written.
func (c *Call) SetCondition(wanted metav1.Condition) {
	now := time.Now()
	if wanted.ObservedGeneration == 0 {
		wanted.ObservedGeneration = c.Body().Generation()
	}
	invalid := condition.Validate(wanted)
	c.Context.Patch.Apply(func(u *unstructured.Unstructured) error {
		if err := errors.Join(invalid, condition.Set(u.Object, wanted, now)); err != nil {
			return Permanent(err)
		}
		return nil
	})
}

// Stopped returns a channel that is closed when a daemon or a timer must stop.
func (c *Call) Stopped() <-chan struct{} {
	if c.Background == nil {
		return nil
	}
	return c.Background.Stopper().Done()
}

// StopReason returns why a daemon or a timer must stop, or 0 if it does not have to stop.
func (c *Call) StopReason() stop.Reason {
	if c.Background == nil {
		return 0
	}
	return c.Background.Stopper().Reason()
}

// Wait sleeps until the pause is over or the handler must return, because it was asked to stop or its
// context is done. It reports whether the handler must return.
func (c *Call) Wait(pause time.Duration) (stopped bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-c.Stopped():
		return true
	case <-c.done():
		return true
	case <-timer.C:
		return c.isStopping() // both can happen at the same time
	}
}

// WaitForChange is Wait, but it also ends when what the daemon looks at has changed since the call began, or since the
// last wait that a change has ended.
func (c *Call) WaitForChange(limit time.Duration) (stopped bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.Stopped():
		return true
	case <-c.done():
		return true
	case <-c.Changed():
	case <-timer.C:
	}
	return c.isStopping() // also if several things happen at the same time
}

// isStopping is a function, so that the frame in which thousands of daemons wait stays small.
func (c *Call) isStopping() bool {
	select {
	case <-c.Stopped():
		return true
	case <-c.done():
		return true
	default:
		return false
	}
}

// done returns a channel that is closed when the context of the call is done.
func (c *Call) done() <-chan struct{} {
	if c.Background == nil {
		return nil
	}
	return c.Background.Done()
}

// Changed returns a channel that has a value when what a daemon looks at has changed, or nil if it looks at nothing.
func (c *Call) Changed() <-chan struct{} {
	if c.Background == nil {
		return nil
	}
	return c.Background.Changed()
}

// Children returns the children that a daemon looks at, as they are now.
func (c *Call) Children() []*object.Snapshot {
	if c.Background == nil {
		return nil
	}
	return c.Background.Children()
}

// Write writes what a daemon has collected: its patch, and its result. Both are empty afterwards, also after an error.
func (c *Call) Write(ctx context.Context) error {
	result := c.result
	c.result = nil
	return c.Background.Write(ctx, result, c.Context.Patch.Take())
}

// Call calls a handler. A panic becomes a PanicError. The caller must expect that the handler ends
// the goroutine (runtime.Goexit). The result depends on the kind: the values of an index, the
// connection of a login, and the result of a probe. It is nil for all others.
//
// Thousands of handlers can wait in it, each on a stack of two kilobytes if its frames fit in. So
// this frame is small: what few calls need is in functions that are not inlined.
func (d *Declaration) Call(ctx context.Context, c *Call) (result any, err error) {
	defer recoverPanic(&err)
	c = c.prepared(d)
	if IsObserved(ctx) {
		return d.callObserved(ctx, c)
	}
	c.findMisfit(d)
	result, err = d.call(ctx, c)
	if err != nil {
		read(err) // in the goroutine of the handler
	}
	return result, err
}

// prepared returns the call as the function gets it.
//
//go:noinline
func (c *Call) prepared(d *Declaration) *Call {
	if d.childCall != nil {
		return c.aboutChild(d, d.childCall())
	}
	return c
}

// findMisfit finds out why the object does not fit the Go type of a handler that is called
// nevertheless. It runs code of users.
//
//go:noinline
func (c *Call) findMisfit(d *Declaration) {
	if d.OnMisfit == CallUntyped {
		c.change.misfit = d.misfitOf(c.Body())
	}
}

// CallIsolated is Call for handlers that must not end the goroutine of the caller: runtime.Goexit
// becomes ErrExited.
func (d *Declaration) CallIsolated(ctx context.Context, c *Call) (result any, err error) {
	err = WithRecover(func() (err error) {
		result, err = d.Call(ctx, c)
		return err
	})
	return result, err
}

// callObserved is Call in the test kit.
func (d *Declaration) callObserved(ctx context.Context, c *Call) (result any, err error) {
	err = ErrExited // unless the handler returns
	observer, _ := ctx.Value(observerKey{}).(Observer)
	end := observer.Begin(c)
	defer func() { end(err) }()
	defer recoverPanic(&err)
	c.findMisfit(d)
	result, err = d.call(ctx, c)
	if err != nil {
		read(err)
	}
	return result, err
}

// Observer is told about the calls of handlers. It must be safe for concurrent use.
type Observer interface {
	// Begin is called before the function of a handler. The function that it returns is told the
	// error of the handler.
	Begin(c *Call) (end func(error))
	// Fail is called after that if the attempt has failed although the function returned no error, as
	// when its edit cannot be written.
	Fail(c *Call, err error)
}

type observerKey struct{}

// WithObserver returns a context in which calls of handlers are observed. The test kit uses
// it; an operator passes the values of its context on to all calls.
func WithObserver(ctx context.Context, observer Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, observer)
}

// IsObserved reports whether calls are observed: the operator runs in the test kit.
func IsObserved(ctx context.Context) bool { return ctx.Value(observerKey{}) != nil }

// ObserveFailure reports that a call has failed although its function returned no error.
func ObserveFailure(ctx context.Context, c *Call, err error) {
	if observer, ok := ctx.Value(observerKey{}).(Observer); ok {
		observer.Fail(c, err)
	}
}

// WithRecover calls the code of users, such as filters. A panic becomes a PanicError, and
// runtime.Goexit ErrExited.
func WithRecover(call func() error) (err error) {
	returned := isolate.Run(func() {
		defer recoverPanic(&err)
		err = call()
	})
	if !returned {
		return ErrExited
	}
	return err
}

// Start is WithRecover for callers that do not wait: the channel gets the error.
func Start(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := ErrExited // unless the code returns
		defer func() { done <- err }()
		defer recoverPanic(&err)
		err = call()
	}()
	return done
}

// Readable returns an error whose text can be read. The methods of errors are the code of users, too:
// a nil pointer in an error panics when it is logged.
func Readable(err error) error {
	if err == nil {
		return nil
	}
	if unreadable := WithRecover(func() error { read(err); return nil }); unreadable != nil {
		return unreadable
	}
	return err
}

// read calls the methods of an error.
func read(err error) {
	_ = err.Error()
	_ = errors.Is(err, ErrExited)
	_ = errors.As(err, new(*PanicError))
}

func recoverPanic(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: function.TrimStack(debug.Stack())}
	}
}
