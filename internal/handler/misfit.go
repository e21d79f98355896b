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
	fits := func(value any) bool {
		return object.NewValue(value).Decode(reflect.New(typed.Elem()).Interface()) == nil
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // without the type, which the MisfitError has
	}
	return &MisfitError{Type: typed.String(), Field: misfitPath(raw, fits).String(), Err: err}
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

// MisfitMode says what happens when a mandatory deletion handler does not fit an object that
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

// DecodingPredicate is a predicate that decodes the object. Its error explains why the
// object does not fit the Go type.
type DecodingPredicate func(*Call) (bool, error)

// guardDecoding makes calls of the handler return a MisfitError for objects that its predicates
// cannot decode, unless it is called nevertheless.
func (d *Declaration) guardDecoding() {
	call := d.call
	predicates := d.decoding // those of copies can be others
	if len(predicates) == 0 || call == nil {
		return
	}
	d.call = func(ctx context.Context, c *Call) (any, error) {
		if c.Misfit() == nil {
			for _, when := range predicates {
				if _, err := when(c); err != nil {
					return nil, err
				}
			}
		}
		return call(ctx, c)
	}
}
