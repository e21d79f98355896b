package handler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// DecodingPredicate is a Predicate that decodes the object. Its error explains why the
// object does not fit the Go type.
type DecodingPredicate func(Arguments) (bool, error)

// WhenDecoded is like When with a predicate that decodes the object. The sample is a
// pointer to the decoded type. An object that does not fit the type counts as a match,
// and fails the handler without a call, as with typed handlers: a filter must not hide a
// broken object from the handler that is responsible for it.
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
		}
	}
}

// decodingPredicates are the decoding predicates of one handler.
type decodingPredicates []DecodingPredicate

// agree reports whether all predicates accept the object or cannot decode it.
func (p decodingPredicates) agree(args func() Arguments) bool {
	for _, when := range p {
		if agreed, err := when(args()); err == nil && !agreed {
			return false
		}
	}
	return true
}

// guard makes the handler fail for objects that its predicates cannot decode.
func (p decodingPredicates) guard(d *Declaration) {
	if len(p) == 0 {
		return
	}
	d.onChange = guarded(p, d.onChange, Permanent)
	d.onEvent = guarded(p, d.onEvent, unchanged)
	d.onDaemon = guarded(p, d.onDaemon, unchanged)
	d.onTimer = guarded(p, d.onTimer, unchanged)
	d.onAdmission = guarded(p, d.onAdmission, func(err error) error {
		return Reject(err.Error(), http.StatusUnprocessableEntity)
	})
	if index := d.onIndex; index != nil {
		d.onIndex = func(ctx context.Context, i *Indexed) (any, error) {
			if err := p.decodeError(i); err != nil {
				return nil, err
			}
			return index(ctx, i)
		}
	}
}

// guarded returns the function with a preceding check, whose error is converted.
func guarded[A Arguments, F ~func(context.Context, A) error](p decodingPredicates, fn F, convert func(error) error) F {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context, a A) error {
		if err := p.decodeError(a); err != nil {
			return convert(err)
		}
		return fn(ctx, a)
	}
}

func unchanged(err error) error { return err }

// decodeError returns why the object cannot be decoded, or nil if it can.
func (p decodingPredicates) decodeError(a Arguments) error {
	for _, when := range p {
		if _, err := when(a); err != nil {
			return err
		}
	}
	return nil
}
