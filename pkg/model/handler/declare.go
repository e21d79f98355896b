package handler

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/model/internal/function"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

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
	d := &Declaration{Kind: kind, Selector: sel, Object: fn.Object, DeclaredAt: function.Caller(), Table: fn.Table}
	d.onChange, d.onEvent, d.onDaemon, d.onTimer, d.onIndex = fn.Change, fn.Event, fn.Daemon, fn.Timer, fn.Index
	d.onAdmission, d.onActivity = fn.Admission, fn.Activity
	d.addProblem(sel.Err())
	for _, option := range options {
		apply(option, d)
	}
	d.decoding.guard(d)
	if origin := fn.origin(); origin == nil {
		d.addProblem(errors.New("there is no function to call"))
	} else {
		d.identify(origin)
	}
	validate(d)
	if len(d.problems) > 0 {
		return nil, fmt.Errorf("%s: the %s handler %q: %w", d.DeclaredAt, kind, d.ID, errors.Join(d.problems...))
	}
	return d, nil
}

// identify sets the id and the identity.
func (d *Declaration) identify(fn any) {
	d.function = function.IdentityOf(fn)
	if !d.idGiven {
		name, ok := function.Name(fn)
		if !ok {
			d.addProblem(fmt.Errorf("a function literal has no name that could be the id of the handler: add kopf.ID(%q)", "my_handler"))
		}
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

// Create declares a handler of creations.
func Create(sel selector.Selector, fn Function, options ...CreateOption) (*Declaration, error) {
	return declare(OnCreate, sel, fn, options, CreateOption.create)
}

// Update declares a handler of updates.
func Update(sel selector.Selector, fn Function, options ...UpdateOption) (*Declaration, error) {
	return declare(OnUpdate, sel, fn, options, UpdateOption.update)
}

// Delete declares a handler of deletions.
func Delete(sel selector.Selector, fn Function, options ...DeleteOption) (*Declaration, error) {
	return declare(OnDelete, sel, fn, options, DeleteOption.delete)
}

// Resume declares a handler of objects that were there before the operator.
func Resume(sel selector.Selector, fn Function, options ...ResumeOption) (*Declaration, error) {
	return declare(OnResume, sel, fn, options, ResumeOption.resume)
}

// ForField declares a handler of one field, whatever happens to the object.
func ForField(sel selector.Selector, field []string, fn Function, options ...UpdateOption) (*Declaration, error) {
	options = append([]UpdateOption{Field(field...)}, options...)
	return declare(OnField, sel, fn, options, UpdateOption.update)
}

// Watch declares a handler of watch events.
func Watch(sel selector.Selector, fn Function, options ...EventOption) (*Declaration, error) {
	return declare(OnEvent, sel, fn, options, EventOption.event)
}

// Daemon declares a function that accompanies every object.
func Daemon(sel selector.Selector, fn Function, options ...DaemonOption) (*Declaration, error) {
	return declare(OnDaemon, sel, fn, options, DaemonOption.daemon)
}

// Timer declares a function that is called for every object again and again.
func Timer(sel selector.Selector, fn Function, options ...TimerOption) (*Declaration, error) {
	return declare(OnTimer, sel, fn, options, TimerOption.timer)
}

// Index declares a function that fills an index from every object. Its errors are
// ignored by default: what is in the index stays as it is.
func Index(sel selector.Selector, fn Function, options ...IndexOption) (*Declaration, error) {
	options = append([]IndexOption{Errors(ErrorsIgnored)}, options...)
	return declare(OnIndex, sel, fn, options, IndexOption.index)
}

// ForOperator declares a handler of an activity: a kind that is of no object.
func ForOperator(kind Kind, fn Function, options ...ActivityOption) (*Declaration, error) {
	return declare(kind, selector.Selector{}, fn, options, ActivityOption.operator)
}

// Validate declares a function that checks objects before they are stored.
func Validate(sel selector.Selector, fn Function, options ...AdmissionOption) (*Declaration, error) {
	return declare(OnValidate, sel, fn, options, AdmissionOption.admission)
}

// Mutate declares a function that changes objects before they are stored.
func Mutate(sel selector.Selector, fn Function, options ...AdmissionOption) (*Declaration, error) {
	return declare(OnMutate, sel, fn, options, AdmissionOption.admission)
}

func newSubhandler(id string, fn ChangeFunc, options []SubhandlerOption) (*Declaration, error) {
	options = append([]SubhandlerOption{ID(id)}, options...)
	return declare(Subhandler, selector.Selector{}, Function{Change: fn}, options, SubhandlerOption.subhandler)
}
