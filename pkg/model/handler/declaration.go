package handler

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

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
	Old         Matcher // of the field before the change
	New         Matcher // of the field after the change
	Predicates  []Predicate

	Errors  ErrorsMode
	Timeout time.Duration // over all attempts; 0: none
	Retries *int          // attempts in all; nil: no limit
	Backoff *time.Duration
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
	function    identity     // of the developer's function, however it is wrapped
	idGiven     bool         // the id was given
	top         *Declaration // of a sub-handler
	problems    []error
}

// Same tells whether two declarations are one handler that is declared for
// several things: the same function with the same id, and for the same index. On
// one cause it is called once.
func (d *Declaration) IsSame(other *Declaration) bool {
	return d.ID == other.ID && d.function == other.function && d.Table == other.Table
}

// Conflict tells, as an error, whether two different functions claim one id.
func (d *Declaration) CheckConflict(other *Declaration) error {
	switch {
	case d.ID != other.ID || d.IsSame(other):
		return nil
	case d.function == other.function:
		return fmt.Errorf("%s: the id %q is taken by another index at %s: give one of them another kopf.ID", d.DeclaredAt, d.ID, other.DeclaredAt)
	case d.function.code == other.function.code:
		return fmt.Errorf("%s: the id %q is taken at %s by the same function with another receiver or other variables: "+
			"give one of them another kopf.ID, or keep the function in one variable and declare that", d.DeclaredAt, d.ID, other.DeclaredAt)
	default:
		return fmt.Errorf("%s: the id %q is taken by another function at %s: give one of them another kopf.ID", d.DeclaredAt, d.ID, other.DeclaredAt)
	}
}

// HoldsDeletion tells whether objects need the finalizer for this handler.
func (d *Declaration) HoldsDeletion() bool { return d.Kind == OnDelete && !d.Optional }

// Function is what a handler of some kind is made of.
type Function struct {
	Change ChangeFunc // all kinds but those below
	Event  EventFunc  // events
	Daemon DaemonFunc // daemons
	Timer  TimerFunc  // timers
	Index  IndexFunc  // indices
	// Activity is of what concerns the operator as a whole.
	Activity ActivityFunc
	// Admission is for validations and mutations.
	Admission AdmissionFunc
	// Table is the index to be filled.
	Table Table
	// Origin is the developer's own function, if the ones above only wrap it:
	// the id and the identity of the handler come from it.
	Origin any
	// Object stands for the selector; see Declaration.
	Object runtime.Object
}

// origin is the developer's function; nil if there is none.
func (f Function) origin() any {
	switch {
	case f.Origin != nil:
		return f.Origin
	case f.Change != nil:
		return f.Change
	case f.Event != nil:
		return f.Event
	case f.Daemon != nil:
		return f.Daemon
	case f.Timer != nil:
		return f.Timer
	case f.Index != nil:
		return f.Index
	case f.Activity != nil:
		return f.Activity
	case f.Admission != nil:
		return f.Admission
	default:
		return nil
	}
}

// declare makes a declaration. What is wrong with it is in the error, with the
// place; the declaration is then not usable.
func declare[O any](kind Kind, sel selector.Selector, fn Function, options []O, apply func(O, *Declaration)) (*Declaration, error) {
	d := &Declaration{Kind: kind, Selector: sel, Object: fn.Object, DeclaredAt: callerPosition(), Table: fn.Table}
	d.onChange, d.onEvent, d.onDaemon, d.onTimer, d.onIndex = fn.Change, fn.Event, fn.Daemon, fn.Timer, fn.Index
	d.onAdmission, d.onActivity = fn.Admission, fn.Activity
	d.addProblem(sel.Err())
	for _, option := range options {
		apply(option, d)
	}
	if function := fn.origin(); function == nil {
		d.addProblem(errors.New("there is no function to call"))
	} else {
		d.identify(function)
	}
	d.validate()
	if len(d.problems) > 0 {
		return nil, fmt.Errorf("%s: the %s handler %q: %w", d.DeclaredAt, kind, d.ID, errors.Join(d.problems...))
	}
	return d, nil
}

// identify settles the id and the identity.
func (d *Declaration) identify(function any) {
	d.function = identityOf(function)
	if !d.idGiven {
		name, err := nameOf(function)
		d.addProblem(err)
		d.ID = name
	}
	if d.ID != "" && d.Field != nil {
		d.ID += "/" + d.Field.String()
	}
}

func (d *Declaration) addProblem(err error) {
	if err != nil {
		d.problems = append(d.problems, err)
	}
}

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
