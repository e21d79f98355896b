package handler

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/model/internal/function"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Function contains the function of a handler.
type Function struct {
	Change ChangeFunc // all kinds except those below
	Event  EventFunc  // events
	Daemon DaemonFunc // daemons
	Timer  TimerFunc  // timers
	Index  IndexFunc  // indices
	Child  ChildFunc  // children
	// Activity handles activities of the operator itself.
	Activity ActivityFunc
	// Admission handles validations and mutations.
	Admission AdmissionFunc
	// Ensures returns the children that an object should have.
	Ensures ChildrenFunc
	// Drift decides about what others change in children.
	Drift DriftFunc
	// Table is the index to fill.
	Table Table
	// Origin is the user's function if the functions above wrap it. It determines the id and
	// the identity of the handler.
	Origin any
	// Object replaces the selector, and ChildObject that of the children; see Declaration.
	Object, ChildObject runtime.Object
}

// origin returns the user's function, or nil if there is none.
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
	case f.Child != nil:
		return f.Child
	case f.Activity != nil:
		return f.Activity
	case f.Admission != nil:
		return f.Admission
	case f.Ensures != nil:
		return f.Ensures
	case f.Drift != nil:
		return f.Drift
	default:
		return nil
	}
}

// declare creates a declaration. The error contains the mistakes and the location of the
// declaration, which cannot be used then.
func declare[O any](kind Kind, sel selector.Selector, fn Function, options []O, apply func(O, *Declaration)) (*Declaration, error) {
	d := &Declaration{Kind: kind, Selector: sel, Object: fn.Object, ChildObject: fn.ChildObject, DeclaredAt: function.Caller(), Table: fn.Table}
	d.onChange = fn.Change
	d.onEvent = fn.Event
	d.onDaemon = fn.Daemon
	d.onTimer = fn.Timer
	d.onIndex = fn.Index
	d.onAdmission = fn.Admission
	d.onActivity = fn.Activity
	d.onChild = fn.Child
	d.onDrift = fn.Drift
	converge(d, fn.Ensures)
	d.addProblem(sel.Err())
	for _, option := range options {
		apply(option, d)
	}
	d.addType(fn.Object)
	d.decoding.guard(d)
	if origin := fn.origin(); origin == nil {
		d.addProblem(errors.New("the function is nil"))
	} else {
		d.identify(origin)
	}
	d.validate()
	return checked(d)
}

// checked returns the declaration, or its mistakes.
func checked(d *Declaration) (*Declaration, error) {
	if len(d.problems) == 0 {
		return d, nil
	}
	for i, problem := range d.problems {
		d.problems[i] = fmt.Errorf("%s: %s: %w", d.DeclaredAt, Describe(d), problem)
	}
	return nil, errors.Join(d.problems...)
}

// identify sets the id and the identity.
func (d *Declaration) identify(fn any) {
	d.function = function.IdentityOf(fn)
	if !d.idGiven {
		name, ok := function.Name(fn)
		if !ok {
			d.addProblem(fmt.Errorf("a function literal has no name to use as the id of the handler: add kopf.ID(%q)", "my_handler"))
		}
		d.ID = name
	}
	if d.ID != "" && d.Field != nil {
		d.ID += "/" + fieldID(d.Field)
	}
}

// fieldID returns what a field appends to the id of a handler. What the name of an annotation cannot have
// becomes an underscore, and a hash tells such fields apart. Kopf cannot store the progress of handlers of
// such fields at all.
func fieldID(field object.Path) string {
	text := field.String()
	if validID.MatchString("a" + text) {
		return text
	}
	hash := sha256.Sum256([]byte(text))
	return invalidInID.ReplaceAllString(text, "_") + "-" + hex.EncodeToString(hash[:4])
}

func (d *Declaration) addProblem(err error) {
	if err != nil {
		d.problems = append(d.problems, err)
	}
}

// Create declares a creation handler.
func Create(sel selector.Selector, fn Function, options ...CreateOption) (*Declaration, error) {
	return declare(OnCreate, sel, fn, options, CreateOption.create)
}

// Update declares an update handler.
func Update(sel selector.Selector, fn Function, options ...UpdateOption) (*Declaration, error) {
	return declare(OnUpdate, sel, fn, options, UpdateOption.update)
}

// Delete declares a deletion handler.
func Delete(sel selector.Selector, fn Function, options ...DeleteOption) (*Declaration, error) {
	return declare(OnDelete, sel, fn, options, DeleteOption.delete)
}

// Resume declares a handler of objects that are older than the operator.
func Resume(sel selector.Selector, fn Function, options ...ResumeOption) (*Declaration, error) {
	return declare(OnResume, sel, fn, options, ResumeOption.resume)
}

// ForField declares a handler of one field, for all causes except deletions.
func ForField(sel selector.Selector, field []string, fn Function, options ...UpdateOption) (*Declaration, error) {
	options = append([]UpdateOption{Field(field...)}, options...)
	return declare(OnField, sel, fn, options, UpdateOption.update)
}

// Ensure declares a function that returns the children of an object. It is one handler with
// several declarations: for everything that happens to the object, for its deletion, if the
// garbage collector of Kubernetes does not reach all children, and for what happens to the
// children.
func Ensure(sel selector.Selector, fn Function, options ...EnsureOption) ([]*Declaration, error) {
	var all []*Declaration
	for _, kind := range []Kind{OnCreate, OnUpdate, OnResume} {
		d, err := declare(kind, sel, fn, options, EnsureOption.ensure)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return append(all, releasing(all[0]), restoring(all[0])), nil
}

// Watch declares a handler of watch events.
func Watch(sel selector.Selector, fn Function, options ...EventOption) (*Declaration, error) {
	return declare(OnEvent, sel, fn, options, EventOption.event)
}

// Daemon declares a function that runs in the background of every object.
func Daemon(sel selector.Selector, fn Function, options ...DaemonOption) (*Declaration, error) {
	return declare(OnDaemon, sel, fn, options, DaemonOption.daemon)
}

// Timer declares a function that is called repeatedly for every object.
func Timer(sel selector.Selector, fn Function, options ...TimerOption) (*Declaration, error) {
	return declare(OnTimer, sel, fn, options, TimerOption.timer)
}

// Index declares a function that fills an index from every object. By default, its
// errors are ignored, and the index keeps its values.
func Index(sel selector.Selector, fn Function, options ...IndexOption) (*Declaration, error) {
	options = append([]IndexOption{Errors(ErrorsIgnored)}, options...)
	return declare(OnIndex, sel, fn, options, IndexOption.index)
}

// Child declares a handler of parents that is called for changes of their children.
func Child(parents, children selector.Selector, fn Function, options ...ChildOption) (*Declaration, error) {
	of := ChildOption(FamilyOption(func(d *Declaration) { d.Children = children }))
	return declare(OnChild, parents, fn, append([]ChildOption{of}, options...), ChildOption.child)
}

// ForOperator declares a handler of an activity, which belongs to no object.
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

// ForConditions declares that the status of the objects has the standard conditions.
func ForConditions(sel selector.Selector, of runtime.Object) (*Declaration, error) {
	d := &Declaration{ID: "kopf.Conditions()", Kind: Conditions, Selector: sel, Object: of, DeclaredAt: function.Caller()}
	d.addProblem(sel.Err())
	d.validateSelector()
	return checked(d)
}
