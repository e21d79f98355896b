// Package handler contains handlers as they are declared, and their calls.
//
// The functions of package kopf (OnCreate and its siblings) create a Declaration from a
// function, a selector, and options. It does not change afterwards. Mistakes are detected when
// the declaration is made, and reported with its location in the source.
//
// A Cause is what has happened to an object: declarations are matched against it. A Call is
// one call of a function. The engine creates it, and package kopf presents it to the function.
// With a Stopper, the engine stops a daemon; with a Table, it fills an index.
//
// Specification: Handlers, Daemons, Timers, In-memory indexing, Arguments, Filtering,
// Error handling.
package handler

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-go/kopf/internal/function"
	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Declaration is a handler as it was declared. Do not modify it, including its exported
// fields: all operators that use it share it.
type Declaration struct {
	// ID is the key of the handler's progress and results: the function's name by default,
	// followed by the field: "relabel/metadata.labels".
	ID       string
	Kind     Kind
	Selector selector.Selector
	// Object has the Go type that the handler is declared for instead of a selector. It is
	// nil otherwise.
	Object runtime.Object
	// Field restricts the handler to a part of the object. Nil means the entire object.
	Field object.Path

	Labels      map[string]Matcher
	Annotations map[string]Matcher
	Value       Matcher // of the field before or after the change
	ValueBefore Matcher // of the field before the change
	ValueAfter  Matcher // of the field after the change
	Predicates  []Predicate

	Errors  ErrorsMode
	Timeout time.Duration   // over all attempts; 0 for none
	Retries *int            // total number of attempts; nil for no limit
	Backoff backoff.Backoff // after a regular error; zero for the setting
	Param   any

	Limit int // of calls at the same time; 0 for none

	Revision string       // objects that were handled under another one are handled again; "" for none
	Baseline bool         // objects that were handled under no revision count as handled under this one
	Rollout  rollout.Plan // how many objects may be handled again at a time; nil for all

	Optional bool // the deletion handler does not hold the object
	Hold     bool // a permanent failure of the deletion handler holds the object
	// After and AfterFailure are the ids of the handlers that it waits for in each cycle.
	After, AfterFailure []string

	OnMisfit MisfitMode // what happens if the deletion handler does not fit a handled object
	Deleted  bool       // the resume handler is also called for deletions; the daemon runs until the object is gone

	// InitialDelay is the delay of a daemon or timer. Nil means none.
	InitialDelay func(*Call) time.Duration

	Interval     time.Duration             // between the calls of a timer; 0 for a single call
	IntervalFunc func(*Call) time.Duration // computes the interval after each call; nil for Interval
	Sharp        bool                      // the interval is measured from start to start
	Idle         time.Duration             // how long the object must be unchanged for a timer, or for a handler of changes
	Schedule     *Schedule                 // of a timer, instead of an interval; nil if there is none

	CancellationBackoff time.Duration  // from the stop signal of a daemon to its cancellation
	CancellationTimeout *time.Duration // from the cancellation until it is abandoned; nil disables both
	CancellationPolling time.Duration  // between warnings about a daemon that does not stop; 0 for the setting

	// Webhook selects the reviews of an admission handler.
	Webhook Webhook

	// Ensures has the options of a handler that returns the children of its object. It is nil
	// for all others.
	Ensures *convergence.Options

	// Watched are the indices whose changes call the handler for all its objects.
	Watched []Table

	// Table is the index that an indexing function fills.
	Table Table

	// Children selects the resources of the children. ChildObject has their Go type, if the
	// handler is declared for one instead of a selector.
	Children    selector.Selector
	ChildObject runtime.Object
	// WakeOn are the fields whose changes wake a daemon that waits, and Owned are the children.
	WakeOn []object.Path
	Owned  []Owned
	// ChildLabel is the label of children whose value is the uid of their parent. It is empty
	// for owner references.
	ChildLabel string

	// EnsuredBy has the ids of the handlers whose children a handler of drift is for. None means
	// all.
	EnsuredBy []string

	// Place is where in the source the handler was declared.
	DeclaredAt string

	call      func(context.Context, *Call) (any, error)
	childCall func() ChildCall  // of one call; see ForCall
	function  function.Identity // of the user's function, even if it is wrapped
	idGiven   bool              // the id was set explicitly
	parent    *Declaration      // of a sub-handler
	decoding  []DecodingPredicate
	types     []reflect.Type // the Go types that objects must fit
	problems  []error
}

// IsSame reports whether two declarations belong to one handler that is declared several
// times: the same function with the same id and, if any, the same index. It is called
// once per cause.
func (d *Declaration) IsSame(other *Declaration) bool {
	return d.ID == other.ID && d.function == other.function && d.Table == other.Table
}

// CheckConflict returns an error if two different functions have the same id.
func (d *Declaration) CheckConflict(other *Declaration) error {
	switch {
	case d.ID != other.ID || d.IsSame(other) && !d.Kind.IsTriggered() && !other.Kind.IsTriggered():
		return nil
	case d.IsSame(other):
		return fmt.Errorf("%s: the id %q is taken by another declaration of %s at %s: each of them has its own calls, so set another kopf.ID for one of them", d.DeclaredAt, ReportedID(d), declarer(other), other.DeclaredAt)
	case d.function == other.function:
		return fmt.Errorf("%s: the id %q is taken by another declaration of an index at %s: set another kopf.ID for one of them", d.DeclaredAt, ReportedID(d), other.DeclaredAt)
	case d.function.SameCode(other.function):
		return fmt.Errorf("%s: the id %q is taken at %s by the same function with another receiver or other variables: "+
			"set another kopf.ID for one of them, or store the function in a variable and declare that", d.DeclaredAt, ReportedID(d), other.DeclaredAt)
	default:
		return fmt.Errorf("%s: the id %q is taken by another function at %s: set another kopf.ID for one of them", d.DeclaredAt, ReportedID(d), other.DeclaredAt)
	}
}

// CheckLimits returns an error if two declarations of one handler have different limits: they
// share their calls.
func CheckLimits(d, other *Declaration) error {
	if !d.IsSame(other) || d.Limit == other.Limit {
		return nil
	}
	return fmt.Errorf("%s: the handler %q has kopf.Limit(%d) here, and kopf.Limit(%d) at %s: declarations with the same id share their calls, so set one limit", d.DeclaredAt, ReportedID(d), d.Limit, other.Limit, other.DeclaredAt)
}

// HoldsDeletion reports whether objects need the finalizer for this handler.
func (d *Declaration) HoldsDeletion() bool { return d.Kind == OnDelete && !d.Optional }

// Bind returns the declaration with the selector of its Go type, if it has one instead
// of a selector.
func (d *Declaration) Bind(scheme *runtime.Scheme) (*Declaration, error) {
	ownsType := slices.ContainsFunc(d.Owned, func(owned Owned) bool { return owned.Object != nil })
	if d.Object == nil && d.ChildObject == nil && !ownsType {
		return d, nil
	}
	bound := *d
	var err error
	bound.Selector, err = selectorOf(d, d.Object, d.Selector, scheme)
	if err != nil {
		return nil, err
	}
	bound.Children, err = selectorOf(d, d.ChildObject, d.Children, scheme)
	if err != nil {
		return nil, err
	}
	bound.Owned = slices.Clone(d.Owned)
	for i, owned := range d.Owned {
		bound.Owned[i].Selector, err = selectorOf(d, owned.Object, owned.Selector, scheme)
		if err != nil {
			return nil, err
		}
	}
	return &bound, nil
}

// selectorOf returns the selector of a Go type, or the other selector if there is no type.
func selectorOf(d *Declaration, typed runtime.Object, otherwise selector.Selector, scheme *runtime.Scheme) (selector.Selector, error) {
	if typed == nil {
		return otherwise, nil
	}
	gvk, err := apiutil.GVKForObject(typed, scheme)
	if err != nil {
		return selector.Selector{}, fmt.Errorf("%s: %s: the type %T is not in the scheme: add it with AddToScheme of its package to Options.Scheme, which is scheme.Scheme of client-go by default: %w",
			d.DeclaredAt, Describe(d), typed, err)
	}
	return selector.Exact(gvk), nil
}

// Under makes the declaration a sub-handler of another one.
func (d *Declaration) Under(parent *Declaration) *Declaration {
	child := *d
	child.ID = parent.ID + "/" + d.ID
	child.After = under(parent, d.After)
	child.AfterFailure = under(parent, d.AfterFailure)
	child.parent = parent
	return &child
}

// IsCalled reports whether an id is that of the handler, with or without the field that is appended to it.
func (d *Declaration) IsCalled(id string) bool {
	return d.ID == id || d.Field != nil && d.ID == id+"/"+fieldID(d.Field)
}

// under returns the ids of sub-handlers as those of their parent.
func under(parent *Declaration, ids []string) []string {
	var all []string
	for _, id := range ids {
		all = append(all, parent.ID+"/"+id)
	}
	return all
}

// DeclaredID returns the id of a sibling as a sub-handler declares it: without the parent's. It returns the ids of other
// handlers as they are.
func (d *Declaration) DeclaredID(sibling string) string {
	if d.parent == nil {
		return sibling
	}
	return strings.TrimPrefix(sibling, d.parent.ID+"/")
}

// ReportedID returns the id of a handler in logs, events, and messages: its own, or that of Ensure for
// the calls that restore children, which users do not declare.
func ReportedID(d *Declaration) string {
	if d.Kind == OnRestore {
		return d.Top().ID
	}
	return d.ID
}

// Describe names a handler in messages as it was declared: the create handler "fn", or
// kopf.Ensure "children".
func Describe(d *Declaration) string { return fmt.Sprintf("%s %q", declarer(d), ReportedID(d)) }

// declarer names what has declared a handler.
func declarer(d *Declaration) string {
	if d.Ensures != nil {
		return "kopf.Ensure"
	}
	return "the " + d.Kind.noun()
}

// LimitGroup identifies the declarations that share a Limit. The ids of sub-handlers differ
// from object to object, so their place in the source identifies them.
func LimitGroup(d *Declaration) string {
	if d.parent == nil || d.Kind != Subhandler {
		return d.Top().ID
	}
	return d.Top().ID + "/ " + d.DeclaredAt
}

// Top returns the topmost declaration: for a sub-handler, that of the declared handler
// above it; otherwise, the declaration itself.
func (d *Declaration) Top() *Declaration {
	if d.parent == nil {
		return d
	}
	return d.parent.Top()
}
