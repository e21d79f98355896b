package handler

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/model/internal/function"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Declaration is one handler as its developer declared it. Nobody changes it
// after it was made, its exported fields included: all operators that use it
// share it.
type Declaration struct {
	// ID is the key of the handler's progress and results: the function's name
	// unless given, then the field: "relabel/metadata.labels".
	ID       string
	Kind     Kind
	Selector selector.Selector
	// Object is of the Go type that the handler is declared for, instead of a
	// selector; nil otherwise.
	Object runtime.Object
	// Field restricts the handler to a part of the object; nil: the whole.
	Field object.Path

	Labels      map[string]Matcher
	Annotations map[string]Matcher
	Value       Matcher // of the field; before or after the change
	ValueBefore Matcher // of the field before the change
	ValueAfter  Matcher // of the field after the change
	Predicates  []Predicate

	Errors  ErrorsMode
	Timeout time.Duration   // over all attempts; 0: none
	Retries *int            // attempts in all; nil: no limit
	Backoff backoff.Backoff // after a regular error; zero: the setting
	Param   any

	Optional bool // a deletion handler that does not hold the object
	Hold     bool // a deletion handler whose permanent failure holds the object
	Deleted  bool // a resuming handler that is called for deletions too

	// InitialDelay of a daemon or a timer; nil: none.
	InitialDelay func(Arguments) time.Duration

	Interval time.Duration // between the calls of a timer; 0: there is only one
	Sharp    bool          // the interval is measured from start to start
	Idle     time.Duration // how long the object must be unchanged for a timer

	CancellationBackoff time.Duration  // from the stop signal to the cancellation of a daemon
	CancellationTimeout *time.Duration // from there until it is given up; nil: never, and no cancellation
	CancellationPolling time.Duration  // between warnings of a daemon that does not stop; 0: the setting

	// Reviews are those that an admission handler is for.
	Webhook Webhook

	// Table is the index that an indexing function fills.
	Table Table

	// Place is where in the source the handler was declared.
	DeclaredAt string

	onChange    ChangeFunc
	onEvent     EventFunc
	onDaemon    DaemonFunc
	onTimer     TimerFunc
	onIndex     IndexFunc
	onAdmission AdmissionFunc
	onActivity  ActivityFunc
	function    function.Identity // of the developer's function, however it is wrapped
	idGiven     bool              // the id was given
	parent      *Declaration      // of a sub-handler
	decoding    decodingPredicates
	problems    []error
}

// IsSame reports whether two declarations are one handler that is declared for
// several things: the same function with the same id, and for the same index. On
// one cause it is called once.
func (d *Declaration) IsSame(other *Declaration) bool {
	return d.ID == other.ID && d.function == other.function && d.Table == other.Table
}

// CheckConflict returns an error if two different functions claim one id.
func (d *Declaration) CheckConflict(other *Declaration) error {
	switch {
	case d.ID != other.ID || d.IsSame(other):
		return nil
	case d.function == other.function:
		return fmt.Errorf("%s: the id %q is taken by another index at %s: give one of them another kopf.ID", d.DeclaredAt, d.ID, other.DeclaredAt)
	case d.function.SameCode(other.function):
		return fmt.Errorf("%s: the id %q is taken at %s by the same function with another receiver or other variables: "+
			"give one of them another kopf.ID, or keep the function in one variable and declare that", d.DeclaredAt, d.ID, other.DeclaredAt)
	default:
		return fmt.Errorf("%s: the id %q is taken by another function at %s: give one of them another kopf.ID", d.DeclaredAt, d.ID, other.DeclaredAt)
	}
}

// HoldsDeletion reports whether objects need the finalizer for this handler.
func (d *Declaration) HoldsDeletion() bool { return d.Kind == OnDelete && !d.Optional }

// Bind is the declaration with the selector of its Go type, if it has one
// instead of a selector of its own.
func (d *Declaration) Bind(scheme *runtime.Scheme) (*Declaration, error) {
	if d.Object == nil {
		return d, nil
	}
	gvk, err := apiutil.GVKForObject(d.Object, scheme)
	if err != nil {
		return nil, fmt.Errorf("%s: the %s handler %q: the scheme does not know the type %T, add its package's AddToScheme: %w",
			d.DeclaredAt, d.Kind, d.ID, d.Object, err)
	}
	bound := *d
	bound.Selector = selector.Exact(gvk)
	return &bound, nil
}

// Call calls the handler of a change. A panic becomes a PanicError.
func (d *Declaration) Call(ctx context.Context, c *Change) (err error) {
	defer recoverPanic(&err)
	return d.onChange(ctx, c)
}

// CallEvent calls the handler of a watch event. A panic becomes a PanicError.
func (d *Declaration) CallEvent(ctx context.Context, e *Event) (err error) {
	defer recoverPanic(&err)
	return d.onEvent(ctx, e)
}

// CallDaemon calls a daemon. A panic becomes a PanicError.
func (d *Declaration) CallDaemon(ctx context.Context, t *Task) (err error) {
	defer recoverPanic(&err)
	t.contextDone = ctx.Done()
	return d.onDaemon(ctx, t)
}

// CallTimer calls a timer. A panic becomes a PanicError.
func (d *Declaration) CallTimer(ctx context.Context, t *Tick) (err error) {
	defer recoverPanic(&err)
	return d.onTimer(ctx, t)
}

// CallIndex calls an indexing function. A panic becomes a PanicError.
func (d *Declaration) CallIndex(ctx context.Context, i *Indexed) (values any, err error) {
	defer recoverPanic(&err)
	return d.onIndex(ctx, i)
}

// CallActivity calls the handler of an activity. A panic becomes a PanicError.
func (d *Declaration) CallActivity(ctx context.Context, a *Activity) (result any, err error) {
	defer recoverPanic(&err)
	return d.onActivity(ctx, a)
}

// CallAdmission calls a handler of admission reviews. A panic becomes a PanicError.
func (d *Declaration) CallAdmission(ctx context.Context, a *Admission) (err error) {
	defer recoverPanic(&err)
	return d.onAdmission(ctx, a)
}

// WithRecover calls what calls the developer's code, such as filters, beside the
// handlers themselves. A panic becomes a PanicError.
func WithRecover(call func() error) (err error) {
	defer recoverPanic(&err)
	return call()
}

func recoverPanic(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: debug.Stack()}
	}
}

// Under makes the declaration a sub-handler of another one.
func (d *Declaration) Under(parent *Declaration) *Declaration {
	child := *d
	child.ID = parent.ID + "/" + d.ID
	child.parent = parent
	return &child
}

// Top is the declaration that was made before anything was called: of a
// sub-handler, that of the handler above it, and above that one; of others, itself.
func (d *Declaration) Top() *Declaration {
	if d.parent == nil {
		return d
	}
	return d.parent.Top()
}
