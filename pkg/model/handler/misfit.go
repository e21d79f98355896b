package handler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// MisfitError means that an object does not fit the Go type that a handler is declared for,
// so that the handler cannot be called for it. That is not an attempt of the handler: no
// record is stored, and nothing counts against its limits. The handler waits until the
// object changes.
type MisfitError struct {
	// Type is the Go type, such as "*v1.Pod".
	Type string
	// Field is the field that does not fit, such as "spec.size". It is empty if the reason
	// is not a single field.
	Field string
	// Former is set if the object was decoded as it was handled last, and not as it is now.
	Former bool
	// Err is the error of the decoder.
	Err error
}

func (e *MisfitError) Error() string {
	what := "the object"
	where := ""
	if e.Former {
		what = "the former state of the object"
	}
	if e.Field != "" {
		where = " in " + e.Field
	}
	return fmt.Sprintf("%s does not fit the Go type %s%s: %s", what, e.Type, where, e.Err)
}

// Unwrap returns the error of the decoder.
func (e *MisfitError) Unwrap() error { return e.Err }

// AsMisfit returns the MisfitError that an error wraps, or nil if it wraps none.
func AsMisfit(err error) *MisfitError {
	var misfit *MisfitError
	if !errors.As(err, &misfit) {
		return nil
	}
	return misfit
}

// DecodeObject decodes an object into a pointer to its Go type. Its error is a MisfitError
// that names the field.
func DecodeObject(raw map[string]any, into any) error {
	err := object.NewView(raw).Decode(into)
	if err == nil {
		return nil
	}
	typed := reflect.TypeOf(into)
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // without the type, which the MisfitError has
	}
	return &MisfitError{Type: typed.String(), Field: misfitPath(raw, fitsType(typed)).String(), Err: err}
}

// fitsType returns a function that checks whether a mapping can be decoded into the type,
// which is a pointer.
func fitsType(typed reflect.Type) func(any) bool {
	return func(value any) bool {
		return object.NewValue(value).Decode(reflect.New(typed.Elem()).Interface()) == nil
	}
}

// misfitPath returns the path of the innermost field that cannot be decoded even alone. Errors
// of decoders name it only for some types. Items of lists are parts of a key: "containers[0]".
func misfitPath(value any, fits func(any) bool) object.Path {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			within := func(inner any) bool { return fits(map[string]any{key: inner}) }
			if !within(value[key]) {
				return below(key, misfitPath(value[key], within))
			}
		}
	case []any:
		for i, item := range value {
			within := func(inner any) bool { return fits([]any{inner}) }
			if !within(item) {
				return below(fmt.Sprintf("[%d]", i), misfitPath(item, within))
			}
		}
	}
	return nil
}

// below returns a path that begins with the key.
func below(key string, inner object.Path) object.Path {
	if len(inner) > 0 && strings.HasPrefix(inner[0], "[") {
		return append(object.Path{key + inner[0]}, inner[1:]...)
	}
	return append(object.Path{key}, inner...)
}

// MisfitMode is what happens when a mandatory deletion handler does not fit an object that
// was handled before.
type MisfitMode int

const (
	// Hold holds the deletion until the object fits. This is the default: with zero values
	// in place of what cannot be decoded, the handler could delete the wrong things.
	Hold MisfitMode = iota
	// CallUntyped calls the handler without the Go object.
	CallUntyped
	// Release releases the object, and skips the handler.
	Release
)

// OnMisfit sets what happens when the deletion handler does not fit an object that was
// handled before. The default is Hold.
func OnMisfit(mode MisfitMode) DeletionOption {
	return func(d *Declaration) {
		if mode < Hold || mode > Release {
			d.addProblem(fmt.Errorf("invalid mode of misfits %d: use kopf.CallUntyped or kopf.Release", mode))
		}
		d.OnMisfit = mode
	}
}

// Misfit returns why the object does not fit the Go types of the handler and of its
// predicates, or nil if it fits them all. It decodes the object.
func (d *Declaration) Misfit(o *Cause) *MisfitError { return d.misfitOf(o.CallContext.body()) }

func (d *Declaration) misfitOf(body *object.Body) *MisfitError {
	for _, typed := range d.types {
		if err := DecodeObject(body.Raw(), reflect.New(typed.Elem()).Interface()); err != nil {
			return AsMisfit(err)
		}
	}
	return nil
}

// addType adds a Go type that objects must fit. The sample is a pointer to it.
func (d *Declaration) addType(sample runtime.Object) {
	if typed := reflect.TypeOf(sample); typed != nil && typed.Kind() == reflect.Pointer && !slices.Contains(d.types, typed) {
		d.types = append(slices.Clone(d.types), typed)
	}
}

// DecodingPredicate is a Predicate that decodes the object. Its error explains why the
// object does not fit the Go type.
type DecodingPredicate func(Arguments) (bool, error)

// WhenDecoded is like When with a predicate that decodes the object. The sample is a
// pointer to the decoded type. An object that does not fit the type counts as a match, and
// as a misfit, as with typed handlers: a filter must not hide a broken object from the
// handler that is responsible for it.
func WhenDecoded(sample runtime.Object, predicate DecodingPredicate) ObjectOption {
	return func(d *Declaration) {
		switch {
		case sample == nil:
			d.addProblem(errors.New("WhenObject requires a pointer to a Go type, such as *corev1.Pod"))
		case predicate == nil:
			d.addProblem(errors.New("the function of WhenObject is nil"))
		case d.Object != nil && reflect.TypeOf(d.Object) != reflect.TypeOf(sample):
			d.addProblem(fmt.Errorf("WhenObject is for objects of the type %T, but the handler is for %T", sample, d.Object))
		default:
			d.decoding = append(d.decoding, predicate)
			d.addType(sample)
		}
	}
}

// decodingPredicates are the decoding predicates of one handler.
type decodingPredicates []DecodingPredicate

// agree reports whether all predicates accept the object or cannot decode it.
func (p decodingPredicates) agree(args Arguments) bool {
	for _, when := range p {
		if agreed, err := when(args); err == nil && !agreed {
			return false
		}
	}
	return true
}

// guard makes calls of the handler return a MisfitError for objects that its predicates
// cannot decode.
func (p decodingPredicates) guard(d *Declaration) {
	if len(p) == 0 {
		return
	}
	d.onChange, d.onEvent, d.onDaemon = guarded(p, d.onChange), guarded(p, d.onEvent), guarded(p, d.onDaemon)
	d.onTimer, d.onAdmission, d.onChild = guarded(p, d.onTimer), guarded(p, d.onAdmission), guarded(p, d.onChild)
	if drift := d.onDrift; drift != nil {
		d.onDrift = func(ctx context.Context, c *Drift) (convergence.Resolution, error) {
			if err := p.decodeError(c); err != nil {
				return convergence.Resolution{}, err
			}
			return drift(ctx, c)
		}
	}
	if index := d.onIndex; index != nil {
		d.onIndex = func(ctx context.Context, i *Indexed) (any, error) {
			if err := p.decodeError(i); err != nil {
				return nil, err
			}
			return index(ctx, i)
		}
	}
}

// guarded returns the function with a preceding check, unless there is nothing to check.
func guarded[A Arguments, F ~func(context.Context, A) error](p decodingPredicates, fn F) F {
	if fn == nil || len(p) == 0 {
		return fn
	}
	return func(ctx context.Context, a A) error {
		if err := p.decodeError(a); err != nil {
			return err
		}
		return fn(ctx, a)
	}
}

// decodeError returns why the object cannot be decoded, or nil if it can, or if the handler
// is called nevertheless.
func (p decodingPredicates) decodeError(a Arguments) error {
	if c, ok := a.(*Change); ok && c.callsUntyped() {
		return nil
	}
	for _, when := range p {
		if _, err := when(a); err != nil {
			return err
		}
	}
	return nil
}
