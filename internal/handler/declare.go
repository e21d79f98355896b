package handler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/internal/function"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Function is a user's function.
type Function struct {
	// Call calls the function. The result depends on the kind: the values of an index, the
	// children of Ensure, the resolution of a drift, the connection of a login, and the result
	// of a probe. It is nil for all others.
	Call func(context.Context, *Call) (any, error)
	// Origin is the user's function. It determines the id and the identity of the handler. Nil
	// means that there is no function, which is a mistake.
	Origin any
	// Table is the index to fill.
	Table Table
	// Object replaces the selector, and ChildObject that of the children; see Declaration.
	Object, ChildObject runtime.Object
}

// declare creates a declaration. The error contains the mistakes and the location of the
// declaration, which cannot be used then. The functions prepare it before the options.
func declare(kind Kind, sel selector.Selector, fn Function, settings []*setting, prepare ...func(*Declaration)) (*Declaration, error) {
	d := &Declaration{Kind: kind, Selector: sel, Object: fn.Object, ChildObject: fn.ChildObject, DeclaredAt: function.Caller(), Table: fn.Table, call: fn.Call}
	d.addProblem(sel.Err())
	for _, p := range prepare {
		p(d)
	}
	d.apply(settings)
	d.addType(fn.Object)
	d.guardDecoding()
	if fn.Origin == nil {
		d.addProblem(errors.New("the function is nil"))
	} else {
		d.identify(fn.Origin)
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
func Create(sel selector.Selector, fn Function, options ...ChangeOption) (*Declaration, error) {
	return declare(OnCreate, sel, fn, settingsOf(options))
}

// Update declares an update handler.
func Update(sel selector.Selector, fn Function, options ...ChangeOption) (*Declaration, error) {
	return declare(OnUpdate, sel, fn, settingsOf(options))
}

// Delete declares a deletion handler.
func Delete(sel selector.Selector, fn Function, options ...ChangeOption) (*Declaration, error) {
	return declare(OnDelete, sel, fn, settingsOf(options))
}

// Resume declares a handler of objects that are older than the operator.
func Resume(sel selector.Selector, fn Function, options ...ChangeOption) (*Declaration, error) {
	return declare(OnResume, sel, fn, settingsOf(options))
}

// ForField declares a handler of one field, for all causes except deletions.
func ForField(sel selector.Selector, field []string, fn Function, options ...ChangeOption) (*Declaration, error) {
	return declare(OnField, sel, fn, settingsOf(append([]ChangeOption{Field(field...)}, options...)))
}

// NewSubhandler declares a sub-handler.
func NewSubhandler(id string, fn Function, options ...ChangeOption) (*Declaration, error) {
	return declare(Subhandler, selector.Selector{}, fn, settingsOf(append([]ChangeOption{ID(id)}, options...)))
}

// Watch declares a handler of watch events. Its errors are logged and ignored.
func Watch(sel selector.Selector, fn Function, options ...Option) (*Declaration, error) {
	return declare(OnEvent, sel, fn, settingsOf(options))
}

// Daemon declares a function that runs in the background of every object.
func Daemon(sel selector.Selector, fn Function, options ...BackgroundOption) (*Declaration, error) {
	return declare(OnDaemon, sel, fn, settingsOf(options))
}

// Timer declares a function that is called repeatedly for every object.
func Timer(sel selector.Selector, fn Function, options ...BackgroundOption) (*Declaration, error) {
	return declare(OnTimer, sel, fn, settingsOf(options))
}

// ForOperator declares a handler of an activity, which belongs to no object.
func ForOperator(kind Kind, fn Function, options ...Option) (*Declaration, error) {
	return declare(kind, selector.Selector{}, fn, settingsOf(options))
}

// Validate declares a function that checks objects before they are stored.
func Validate(sel selector.Selector, fn Function, options ...AdmissionOption) (*Declaration, error) {
	return declare(OnValidate, sel, fn, settingsOf(options))
}

// Mutate declares a function that changes objects before they are stored.
func Mutate(sel selector.Selector, fn Function, options ...AdmissionOption) (*Declaration, error) {
	return declare(OnMutate, sel, fn, settingsOf(options))
}

// ForConditions declares that the status of the objects has the standard conditions.
func ForConditions(sel selector.Selector, of runtime.Object) (*Declaration, error) {
	return ForConditionsAt(function.Caller(), sel, of)
}

// ForConditionsAt is ForConditions for a declaration at a place outside the source: in a file that the program reads.
func ForConditionsAt(place string, sel selector.Selector, of runtime.Object) (*Declaration, error) {
	d := &Declaration{ID: "kopf.Conditions()", Kind: Conditions, Selector: sel, Object: of, DeclaredAt: place}
	d.addProblem(sel.Err())
	d.validateSelector()
	return checked(d)
}
