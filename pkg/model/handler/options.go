package handler

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/rollout"
)

// ID sets the handler's id instead of the function's name. Progress and results are
// stored under the id, so a renamed handler counts as a new one. If the handler has a
// field, it is appended to the id; what an id cannot contain becomes _, and a hash follows. An id contains ASCII letters and digits, and the
// characters -, _, ., and / between them. With the id of an operator in Python, the
// handler continues its work.
func ID(id string) HandlerOption {
	return func(d *Declaration) {
		d.ID = id
		d.idGiven = true
	}
}

// Param passes a value to the handler, so that one function can be declared several
// times with different values. All calls share the value, including concurrent ones.
//
// Specification: Arguments, "Parametrization".
func Param(value any) HandlerOption { return func(d *Declaration) { d.Param = value } }

// Labels restricts the handler to objects whose labels match all filters. If the option
// is used several times, all filters must match.
//
// Specification: Filtering, "Metadata filters".
func Labels(filters map[string]Matcher) ObjectOption {
	return func(d *Declaration) { d.Labels = mergeFilters(d.Labels, filters) }
}

// Annotations restricts the handler to objects whose annotations match all filters. If
// the option is used several times, all filters must match.
//
// Specification: Filtering, "Metadata filters".
func Annotations(filters map[string]Matcher) ObjectOption {
	return func(d *Declaration) { d.Annotations = mergeFilters(d.Annotations, filters) }
}

// mergeFilters returns the filters of two options. It does not modify the maps, which
// users may share between handlers.
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

// When calls the handler only if the predicate returns true. If the option is used
// several times, all predicates must return true.
//
// Specification: Filtering, "Callback filters".
func When(predicate func(Arguments) bool) ObjectOption {
	return func(d *Declaration) { d.Predicates = append(d.Predicates, predicate) }
}

// Field restricts the handler to a field: "spec.size", or several keys if the keys
// contain dots: Field("metadata", "labels", "example.com/role"), which is the same as
// Field("/metadata/labels/example.com~1role"). The field must exist. For updates, it
// must have changed, and must exist before or after the change. It becomes a part of the
// handler's id: "fn/spec.size".
//
// Specification: Filtering, "Field filters".
func Field(path ...string) FieldOption {
	return func(d *Declaration) {
		if d.Field != nil {
			d.addProblem(errors.New("it has two fields: declare the handler once for each of them"))
		}
		field, err := ParseField(path)
		d.addProblem(err)
		d.Field = field
	}
}

// ParseField parses a field's path, which is dotted or divided into keys.
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

// Value filters by the value of the field. For updates, the value before or after the
// change must match. It requires a field, and cannot be combined with ValueBefore or
// ValueAfter.
//
// Specification: Filtering, "Field filters".
func Value(filter Matcher) FieldOption { return func(d *Declaration) { d.Value = filter } }

// ValueBefore filters by the value of the field before the change. It requires a field.
//
// Specification: Filtering, "Change filters".
func ValueBefore(filter Matcher) TransitionOption {
	return func(d *Declaration) { d.ValueBefore = filter }
}

// ValueAfter filters by the value of the field after the change. It requires a field.
//
// Specification: Filtering, "Change filters".
func ValueAfter(filter Matcher) TransitionOption {
	return func(d *Declaration) { d.ValueAfter = filter }
}

// Errors sets how to treat regular errors, which are neither temporary nor permanent.
// The default is ErrorsTemporary.
//
// Specification: Error handling, "Regular errors".
func Errors(mode ErrorsMode) RetryOption { return func(d *Declaration) { d.Errors = mode } }

// Timeout limits the time over all attempts of the handler, including the delays between
// them. When it is over, a running attempt is canceled, and the handler has failed. If
// the next attempt would begin too late, the handler fails immediately. The default is
// 0, which means no limit. A negative limit is a mistake in the declaration.
//
// Specification: Error handling, "Timeouts".
func Timeout(limit time.Duration) RetryOption { return func(d *Declaration) { d.Timeout = limit } }

// Retries limits the total number of attempts, including the first one: 1 means one call
// and no retry. If the last attempt fails, the handler has failed. By default, there is
// no limit. A limit below 1 is a mistake in the declaration.
//
// Specification: Error handling, "Retries".
func Retries(attempts int) RetryOption { return func(d *Declaration) { d.Retries = &attempts } }

// Backoff sets the delay before the next attempt after a regular error. 0 means no
// delay. The default is the setting Execution.Backoff, which defaults to 60 seconds.
//
// Specification: Error handling, "Backoff".
func Backoff(pause time.Duration) RetryOption {
	return func(d *Declaration) { d.Backoff = backoff.Constant(pause) }
}

// ExponentialBackoff doubles the delay after each attempt, from the first delay up to
// the longest; see backoff.Exponential. It replaces Backoff.
func ExponentialBackoff(first, longest time.Duration) RetryOption {
	return func(d *Declaration) { d.Backoff = backoff.Exponential(first, longest) }
}

// Limit limits how many calls of the handler run at the same time in one operator, for all
// objects together. An object whose handler must wait keeps its turn: the oldest one is next.
// Other handlers of the object do not wait for it, nothing is written meanwhile, and the time
// of Timeout begins with the first call. Declarations with the same id share the calls, and
// so do the sub-handlers that one line of code declares, but not a daemon, a timer, and other
// handlers among each other. A daemon has its place as long as it runs, and gives it up until
// it is retried. By default, only the setting Execution.MaxCalls limits the calls, except
// those of daemons and timers. A limit below 1 is a mistake in the declaration.
func Limit(calls int) LimitOption {
	return func(d *Declaration) {
		d.Limit = calls
		if calls < 1 {
			d.addProblem(fmt.Errorf("kopf.Limit(%d) allows no call: it must be at least 1", calls))
		}
	}
}

// Revision names the revision of the handler. Objects that were handled under another revision
// are handled again: the handler is called with the reason update, and with an empty diff.
// Revisions are compared by equality. The object stores the revision under which the handler
// has ended last, in one annotation for all its handlers, with the write that ends the
// handling.
//
// Objects that were handled before the handler had a revision are handled again, too, unless
// Baseline is set; the log of the start has their number. New objects are handled anyway. The
// option applies to all declarations of the function with the same id.
func Revision(revision string) RevisionOption {
	return func(d *Declaration) {
		d.Revision = revision
		if revision == "" {
			d.addProblem(errors.New("kopf.Revision is empty: give a name, such as a number"))
		}
	}
}

// Baseline adopts the objects that were handled before the handler had a revision: they count
// as handled under the current one, which is stored with one write for each object. It requires
// Revision.
func Baseline() RevisionOption { return func(d *Declaration) { d.Baseline = true } }

// Rollout limits how many objects are handled again at a time because of a new Revision. Each
// step adds objects, and the last one is repeated until all objects are reached; a step begins
// when all objects of the earlier ones have succeeded. After a permanent failure, no
// other object begins: the log, an event, and the metric kopf_rollout_objects say so. The
// rollout continues when no object has failed under the revision anymore, or with another
// revision. Objects are taken in the order of their namespaces and names. Everything follows
// from the annotations of the objects, so a restart continues it.
//
// Changes of objects are handled as usual, and count. It requires Revision, and cannot be
// combined with OnResume for the same function, which is called for all objects anyway.
func Rollout(steps ...rollout.Step) RevisionOption {
	return func(d *Declaration) {
		d.Rollout = steps
		d.addProblem(rollout.Plan(steps).Validate())
		if len(steps) == 0 {
			d.addProblem(errors.New("kopf.Rollout has no steps: leave it out to handle all objects at once"))
		}
	}
}

// Optional makes a deletion handler optional: it needs no finalizer, does not hold the
// object, and may miss the deletion.
//
// Specification: Handlers, "State-changing handlers".
func Optional() DeletionOption { return func(d *Declaration) { d.Optional = true } }

// HoldOnFailure keeps the finalizer if the handler fails permanently. The object then
// stays until someone resolves the problem, which a condition and an event report. By
// default, the object is released.
func HoldOnFailure() DeletionOption { return func(d *Declaration) { d.Hold = true } }

// Deleted calls a resume handler also for objects that are being deleted, and a handler of
// children also for parents that are.
//
// Specification: Handlers, "Resuming handlers".
func Deleted() ResumingOption { return func(d *Declaration) { d.Deleted = true } }

// AllowEmpty accepts that a handler of children returns none although some exist.
func AllowEmpty() ConvergenceOption {
	return func(d *Declaration) { d.Ensures.AllowEmpty = true }
}

// AdoptExisting takes over objects that exist already and have no owner.
func AdoptExisting() ConvergenceOption {
	return func(d *Declaration) { d.Ensures.AdoptExisting = true }
}

// WaitReady applies a wave of children only when the earlier ones are ready.
func WaitReady() ConvergenceOption {
	return func(d *Declaration) { d.Ensures.WaitReady = true }
}

// WatchIndex also calls a handler of children when the keys or values of an index change.
func WatchIndex(indices ...Table) ConvergenceOption {
	return func(d *Declaration) {
		if len(indices) == 0 {
			d.addProblem(errors.New("kopf.WatchIndex has no index: add some, or leave it out"))
		}
		for _, table := range indices {
			if v := reflect.ValueOf(table); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
				d.addProblem(errors.New("the index of kopf.WatchIndex is nil: is its variable initialized after the declaration?"))
				continue
			}
			d.Watched = append(slices.Clip(d.Watched), table)
		}
	}
}

// Prune also deletes children of protected kinds.
func Prune(kinds ...string) ConvergenceOption {
	return func(d *Declaration) {
		parsed, err := convergence.ParseKinds(kinds)
		d.addProblem(err)
		d.Ensures.Prune = append(d.Ensures.Prune, parsed...)
	}
}

// Recreate deletes and creates children whose change is refused because a field is immutable.
func Recreate(kinds ...string) ConvergenceOption {
	return func(d *Declaration) {
		parsed, err := convergence.ParseKinds(kinds)
		d.addProblem(err)
		d.Ensures.Recreate = append(d.Ensures.Recreate, parsed...)
	}
}
