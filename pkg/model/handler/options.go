package handler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// ID sets the handler's id instead of the function's name. Progress and results
// are persisted under it: renaming a handler makes another one of it. A field
// is still appended. An id has letters and digits of ASCII, and -, _, ., / in
// between; under the id of an operator in Python its work is taken over.
func ID(id string) HandlerOption {
	return func(d *Declaration) { d.ID, d.idGiven = id, true }
}

// Param hands a value to the handler, so that one function can be declared
// several times with different meanings. All calls share the value, also those
// that run at the same time.
//
// Specification: Arguments, "Parametrization".
func Param(value any) HandlerOption { return func(d *Declaration) { d.Param = value } }

// Labels calls the handler only for objects whose labels match, all of them;
// those of all such options, if there are several.
//
// Specification: Filtering, "Metadata filters".
func Labels(filters map[string]Matcher) ObjectOption {
	return func(d *Declaration) { d.Labels = mergeFilters(d.Labels, filters) }
}

// Annotations calls the handler only for objects whose annotations match, as
// Labels does with labels.
//
// Specification: Filtering, "Metadata filters".
func Annotations(filters map[string]Matcher) ObjectOption {
	return func(d *Declaration) { d.Annotations = mergeFilters(d.Annotations, filters) }
}

// mergeFilters are the filters of two options. The maps stay as they are: developers
// share them between handlers.
func mergeFilters(filters, more map[string]Matcher) map[string]Matcher {
	result := make(map[string]Matcher, len(filters)+len(more))
	maps.Copy(result, filters)
	for key, matcher := range more {
		if earlier, twice := result[key]; twice {
			matcher = All(earlier, matcher)
		}
		result[key] = matcher
	}
	return result
}

// When calls the handler only if the predicate agrees. Given several times, all
// of them must agree.
//
// Specification: Filtering, "Callback filters".
func When(predicate func(Arguments) bool) ObjectOption {
	return func(d *Declaration) { d.Predicates = append(d.Predicates, predicate) }
}

// Field restricts the handler to a field: "spec.size", or several keys if they
// have dots themselves: Field("metadata", "labels", "example.com/role"), which is
// also Field("/metadata/labels/example.com~1role"). The
// field must be present; for updates: before or after the change, and changed.
// It becomes a part of the handler's id: "fn/spec.size".
//
// Specification: Filtering, "Field filters".
func Field(path ...string) FieldOption {
	return func(d *Declaration) {
		if d.Field != nil {
			d.addProblem(errors.New("it has two fields: declare it once for each of them"))
		}
		field, err := ParseField(path)
		d.addProblem(err)
		d.Field = field
	}
}

// ParseField reads a field's path as developers write it: dotted, or in parts.
func ParseField(path []string) (object.Path, error) {
	switch len(path) {
	case 0:
		return nil, errors.New("the field is empty")
	case 1:
		return object.ParsePath(path[0])
	}
	if slices.Contains(path, "") {
		return nil, fmt.Errorf("the field %q has an empty part", path)
	}
	return slices.Clone(path), nil
}

// Value filters by the value of the field; for updates: by the value before or
// after the change. It needs a field, and excludes ValueBefore and ValueAfter.
//
// Specification: Filtering, "Field filters".
func Value(filter Matcher) FieldOption { return func(d *Declaration) { d.Value = filter } }

// ValueBefore filters by the value of the field before the change. It needs a field.
//
// Specification: Filtering, "Change filters".
func ValueBefore(filter Matcher) TransitionOption {
	return func(d *Declaration) { d.ValueBefore = filter }
}

// ValueAfter filters by the value of the field after the change. It needs a field.
//
// Specification: Filtering, "Change filters".
func ValueAfter(filter Matcher) TransitionOption {
	return func(d *Declaration) { d.ValueAfter = filter }
}

// Errors sets what becomes of errors that are neither temporary nor permanent;
// the default is ErrorsTemporary.
//
// Specification: Error handling, "Regular errors".
func Errors(mode ErrorsMode) RetryOption { return func(d *Declaration) { d.Errors = mode } }

// Timeout limits the time over all attempts of the handler, with the pauses between
// them. When it is over, a running attempt is canceled, and the handler has failed. If
// the next attempt would begin too late, the handler fails at once. 0 is the default: no
// limit. A negative limit is a mistake in the declaration.
//
// Specification: Error handling, "Timeouts".
func Timeout(limit time.Duration) RetryOption { return func(d *Declaration) { d.Timeout = limit } }

// Retries limits the number of attempts in all, with the first one: 1 is one call and
// no retry. After the last attempt has failed, the handler has failed. There is no limit
// by default. A limit below 1 is a mistake in the declaration.
//
// Specification: Error handling, "Retries".
func Retries(attempts int) RetryOption { return func(d *Declaration) { d.Retries = &attempts } }

// Backoff sets the pause before the next attempt after a regular error. 0 is no pause.
// The default is the setting Execution.Backoff, which is 60 seconds unless it is set.
//
// Specification: Error handling, "Backoff".
func Backoff(pause time.Duration) RetryOption {
	return func(d *Declaration) { d.Backoff = backoff.Constant(pause) }
}

// ExponentialBackoff doubles the pause after each attempt, from the first pause up to
// the longest; see backoff.Exponential. It replaces Backoff.
func ExponentialBackoff(first, longest time.Duration) RetryOption {
	return func(d *Declaration) { d.Backoff = backoff.Exponential(first, longest) }
}

// Optional makes a deletion handler that does not hold the object for itself:
// no finalizer is added for it, and it may miss the deletion.
//
// Specification: Handlers, "State-changing handlers".
func Optional() DeletionOption { return func(d *Declaration) { d.Optional = true } }

// HoldOnFailure keeps the finalizer when the handler fails permanently. The
// object then stays until somebody resolves the matter; a condition and an event
// say so. By default the object is released.
func HoldOnFailure() DeletionOption { return func(d *Declaration) { d.Hold = true } }

// Deleted calls a resuming handler also for objects that are being deleted.
//
// Specification: Handlers, "Resuming handlers".
func Deleted() ResumingOption { return func(d *Declaration) { d.Deleted = true } }
