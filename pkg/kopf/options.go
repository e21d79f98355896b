package kopf

import (
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/function"
	"github.com/kopf-go/kopf/internal/handler"
)

// The options of handlers. The compiler tells the families apart: an interval is no option of
// a creation handler. What a family cannot tell apart, such as an interval of a daemon, is a mistake
// in the declaration, which is reported when the operator is made.
type (
	// Option is an option of handlers of all families, or of several. It is one of each family, too.
	Option = handler.Option
	// ChangeOption is an option of OnCreate, OnUpdate, OnField, OnDelete, OnResume, and
	// Change.Subhandler.
	ChangeOption = handler.ChangeOption
	// BackgroundOption is an option of Daemon and Timer.
	BackgroundOption = handler.BackgroundOption
	// AdmissionOption is an option of OnValidate and OnMutate.
	AdmissionOption = handler.AdmissionOption
	// ChildOption is an option of Ensure, OnDrift, and OnChild.
	ChildOption = handler.ChildOption
)

// ID sets the id of the handler. The default is the name of the function; a function
// literal has none, so it needs an id. Progress and results are stored under the id:
// ID("create_fn") takes over the work of that handler of an operator in Python.
func ID(id string) Option { return handler.ID(id) }

// DeclaredAt says where the handler is declared, for messages about mistakes: in a file that the program reads,
// for example. The default is the place of the call in the source.
func DeclaredAt(place string) Option { return handler.DeclaredAt(place) }

// Param passes a value to the handler, which gets it from Change.Param. All calls share the
// value.
func Param(value any) Option { return handler.Param(value) }

// Labels calls the handler only for objects whose labels match all filters.
func Labels(filters map[string]Matcher) Option { return handler.Labels(filters) }

// Annotations calls the handler only for objects whose annotations match all filters.
func Annotations(filters map[string]Matcher) Option { return handler.Annotations(filters) }

// When calls the handler only if the predicate returns true. Given several times, all
// predicates must. The operator calls it often, and concurrently for several objects, so it
// must be quick, and must not change anything. See also WhenObject.
func When(predicate func(Arguments) bool) Option {
	if predicate == nil {
		return handler.When(handler.Predicate{})
	}
	return handler.When(handler.Predicate{
		Accepts: func(c *handler.Call) bool { return predicate(argumentsOf(c)) }, Place: function.Place(predicate),
	})
}

// WhenObject is When for objects of a Go type: it calls the handler only if the predicate
// returns true for the object as it is now. T is a pointer type, such as *corev1.Pod; for a
// typed handler, it is the type of the handler. Given several times, all predicates must
// return true.
//
// The object is decoded each time the operator decides whether to call the handler, so
// prefer Labels or Field for many objects. The predicate must be quick, and must not
// change anything.
//
// An object that does not fit the type counts as a match, and the handler is not called for
// it, as with handlers that are declared for the type; see For. A review of something of
// another kind, as with the subresource "scale", counts as a match, too.
func WhenObject[T client.Object](predicate func(T) bool) Option {
	if predicate == nil {
		return handler.WhenDecoded(newOf[T](), nil)
	}
	return handler.WhenDecoded(newOf[T](), func(c *handler.Call) (bool, error) {
		if c.Review != nil && !isOfKind(c, c.Body()) {
			return true, nil
		}
		object := newOf[T]()
		if err := handler.DecodeObject(c.Body().Raw(), object); err != nil {
			return false, err
		}
		return predicate(object), nil
	})
}

// Field restricts the handler to objects with a field, and update handlers to changes of
// it. The path is dotted, "spec.size", or in parts if they contain dots:
// Field("metadata", "labels", "example.com/role"). It becomes a part of the handler's id.
func Field(path ...string) Option { return handler.Field(path...) }

// Value calls the handler only if the value of the field matches. For updates, the value
// before or after the change must match.
func Value(filter Matcher) Option { return handler.Value(filter) }

// ValueBefore calls the handler only if the value of the field before the change matches.
func ValueBefore(filter Matcher) ChangeOption { return handler.ValueBefore(filter) }

// ValueAfter calls the handler only if the value of the field after the change matches.
func ValueAfter(filter Matcher) ChangeOption { return handler.ValueAfter(filter) }

// Retries limits the number of attempts in all, with the first one: 1 is one call and
// no retry. There is no limit by default. A limit below 1 is a mistake in the
// declaration.
func Retries(attempts int) Option { return handler.Retries(attempts) }

// Timeout limits the time over all attempts of the handler, with the pauses between
// them. A running attempt is canceled when the time is over. There is no limit by
// default. A negative limit is a mistake in the declaration.
func Timeout(limit time.Duration) Option { return handler.Timeout(limit) }

// Backoff sets the pause before the next attempt after a regular error; 0 is no pause.
// The default is Settings.Execution.Backoff, which is 60 seconds unless it is set.
func Backoff(pause time.Duration) Option { return handler.Backoff(pause) }

// ExponentialBackoff doubles the pause after each attempt, from the first pause up to
// the longest, and shortens each by up to a fifth, by chance. All earlier attempts for the
// change count, also those that ended with a temporary error, and also those before a
// restart of the operator. It replaces Backoff; for all handlers, use
// backoff.Exponential in Settings.Execution.Backoff.
func ExponentialBackoff(first, longest time.Duration) Option {
	return handler.ExponentialBackoff(first, longest)
}

// Errors sets how to treat regular errors, which are neither temporary nor permanent. The
// default is ErrorsTemporary; for indices, ErrorsIgnored.
func Errors(mode ErrorsMode) Option { return handler.Errors(mode) }

// Limit limits how many calls of the handler run at the same time, for all objects together,
// in this process. An object whose handler must wait keeps its turn, without a write and
// without holding up its other handlers; the time of Timeout begins with the first call.
// Declarations with the same id share the calls, but daemons and timers share them only with
// their own kind. A daemon has its place as long as it runs: with more objects than places,
// the others wait until a daemon ends. By default, only Settings.Execution.MaxCalls limits the
// calls, except those of daemons and timers. A limit below 1 is a mistake in the declaration.
func Limit(calls int) Option { return handler.Limit(calls) }

// Optional makes a deletion handler that does not keep objects from being deleted: no
// finalizer is added for it, so it can miss deletions.
func Optional() ChangeOption { return handler.Optional() }

// HoldOnFailure keeps the object if the deletion handler fails permanently. A condition
// and an event of the object say so. By default, the object is released.
func HoldOnFailure() ChangeOption { return handler.HoldOnFailure() }

// After calls the handler only when the handlers with these ids have succeeded in the same
// handling of a change. The success is stored before, so a crash does not change the order. If one of them
// fails for good, or is skipped because of its own order, the handler is skipped. Those that are not
// called for the change are not waited for. If the object changes while some of the handlers have ended,
// all of them are called for that change afterward.
//
// For a sub-handler, the ids are those of sub-handlers of the same call. An unknown id, the id of a handler
// that is never called for the same change, and an order that is a circle are mistakes in the declaration.
//
// After("fn") also waits for the handlers of fields of that id, such as "fn/spec.size".
func After(ids ...string) ChangeOption { return handler.After(ids...) }

// AfterFailure calls the handler only when one of the handlers with these ids has failed for good
// in the same handling of a change: Change.Failures has its error. If none can fail anymore, the handler is
// skipped. See After; with both, both must hold.
func AfterFailure(ids ...string) ChangeOption { return handler.AfterFailure(ids...) }

// CallUntyped calls a typed deletion handler without the Go object if an object that was handled
// before is deleted, but does not fit the type: the object is nil, and Change.Misfit returns the
// reason. By default, the deletion is held until the object fits, because values that are missing
// could make the handler delete the wrong things.
func CallUntyped() ChangeOption { return handler.OnMisfit(handler.CallUntyped) }

// ReleaseMisfits releases an object that was handled before and does not fit the Go type of a
// deletion handler, and skips the handler. See CallUntyped.
func ReleaseMisfits() ChangeOption { return handler.OnMisfit(handler.Release) }

// Deleted also calls a resume handler for objects that are being deleted, and a handler of children
// for parents that are. A daemon with it runs until its object is gone, and needs no finalizer: it sees a deletion only if
// something else holds the object, and is asked to stop when the object does not exist anymore.
func Deleted() Option { return handler.Deleted() }

// InitialDelay delays the first call each time a daemon or a timer starts: when the object
// is created, when the operator starts, and when the object matches the filters again. The
// default is no delay.
func InitialDelay(delay time.Duration) BackgroundOption { return handler.InitialDelay(delay) }

// InitialDelayFunc is InitialDelay with a delay that depends on the object. A negative
// delay is none.
func InitialDelayFunc(delay func(Arguments) time.Duration) BackgroundOption {
	if delay == nil {
		return handler.InitialDelayFunc(nil)
	}
	return handler.InitialDelayFunc(func(c *handler.Call) time.Duration { return delay(argumentsOf(c)) })
}

// Interval sets the time between two calls of a timer, from the end of one to the start of
// the next. Without an interval, the timer is called once after each Idle time, or only
// once.
func Interval(interval time.Duration) BackgroundOption { return handler.Interval(interval) }

// IntervalFunc is Interval with an interval that depends on the object: it is computed after
// each call, from the object as it is then. If the function panics, or returns an interval that
// is not positive, the call has failed: the error is reported for the object, and the timer is
// called again after its backoff.
func IntervalFunc(interval func(Arguments) time.Duration) BackgroundOption {
	if interval == nil {
		return handler.IntervalFunc(nil)
	}
	return handler.IntervalFunc(func(c *handler.Call) time.Duration { return interval(argumentsOf(c)) })
}

// ScheduleOption is an option of Schedule, ScheduleFunc, and CheckSchedule, and none of Timer.
type ScheduleOption = handler.ScheduleOption

// Schedule calls a timer at times of the clock, instead of at an interval: with the five
// fields of cron, or a name: @hourly, @daily (@midnight), @weekly, @monthly, @yearly (@annually). The fields
// are the minute (0-59), the hour (0-23), the day of the month (1-31), the month (1-12 or jan-dec), and the day of
// the week (0-7 or sun-sat; 0 and 7 are Sunday), each as a list of numbers, ranges (1-5), and steps (*/15). See TimeZone
// and CatchUp, which are options of the schedule:
//
//	kopf.Timer(resource, backup, kopf.Schedule("0 3 * * *", kopf.TimeZone("Europe/Berlin"), kopf.CatchUp(0)))
//
// The schedule begins with the creation of the object. The end of the last run is stored on the
// object, under the id of the handler: a restart and a new leader neither repeat nor lose a run.
// Only an operator that is killed after a call, and before it has stored the end, makes the call again.
// If the schedule is another one than that of the last run, its runs begin when the operator sees it.
//
// A run that fails is repeated after its backoff. When it has failed for good, because of a
// permanent error or a limit, the next run is at the next time. Runs of one object never overlap: times
// that pass during a run are missed.
func Schedule(text string, options ...ScheduleOption) BackgroundOption {
	return handler.Scheduled(text, options...)
}

// ScheduleFunc is Schedule with a schedule that depends on the object. The function is called
// again when the object changes, and after each run. The schedule can begin with its time zone:
// "CRON_TZ=Europe/Berlin 0 3 * * *". A schedule that has changed has runs from then on, and those of the former
// one that were missed are not made up for.
//
// An error of the function, a panic, and a schedule that cannot be read are reported once for the object, which has no
// runs until they are corrected. A schedule that cannot be read waits for a change of the object; after an error, the
// function is also called again after the backoff of the timer. See CheckSchedule.
func ScheduleFunc(schedule func(Arguments) (string, error), options ...ScheduleOption) BackgroundOption {
	if schedule == nil {
		return handler.ScheduleFunc(nil, options...)
	}
	return handler.ScheduleFunc(func(c *handler.Call) (string, error) { return schedule(argumentsOf(c)) }, options...)
}

// CheckSchedule returns an error if a timer of ScheduleFunc with these options cannot read the schedule, or if it never
// runs, such as on February 30. It is for validating handlers.
func CheckSchedule(text string, options ...ScheduleOption) error {
	return handler.CheckSchedule(text, options...)
}

// TimeZone sets the time zone of a schedule by its name in the IANA database, such as
// "Europe/Berlin". The default is UTC. When the clocks go forward over the time of a run, it is when they
// have done so; when they go back, a schedule with certain hours has one run, the first time. It is an option of Schedule
// and ScheduleFunc.
func TimeZone(name string) ScheduleOption { return handler.TimeZone(name) }

// CatchUp sets how many of the runs that were missed are made up for, the last ones: while the
// operator was not running, was paused, or was busy with an earlier run of the object. The default is 1, as for
// a CronJob; 0 skips all of them. It is an option of Schedule and ScheduleFunc.
func CatchUp(runs int) ScheduleOption { return handler.CatchUp(runs) }

// Sharp measures the interval of a timer from the start of one call to the start of the
// next. A call that takes longer skips the calls that it has missed.
func Sharp() BackgroundOption { return handler.Sharp() }

// Idle calls a timer, or a handler of OnCreate, OnUpdate, OnField, or Ensure, only after the object has not
// changed for that time. Changes meanwhile become one difference: the handler sees what it has not handled yet.
// The creation of the object and the start of the operator count as changes; the status does not.
//
// The handlers of one change end together, so others of the object wait with their next change.
func Idle(idle time.Duration) Option { return handler.Idle(idle) }

// WakeOn lets the changes of a field of the object wake a daemon that waits in Task.WaitForChange. The path is dotted,
// "spec.size", or in parts if they contain dots, as for Field. The option can be given several times; the daemon
// is woken for changes of any of the fields, including their creation and removal. Writes of the operator itself
// do not wake it.
func WakeOn(path ...string) BackgroundOption { return handler.WakeOn(path...) }

// WatchChildren lets a daemon know the children of its object, as Task.Children, and lets their changes wake it as
// WakeOn does. A child belongs to the object by an owner reference, or by a label: see ChildLabel. The option can be
// given several times, for several kinds. The operator watches them in its namespaces.
func WatchChildren(children Selector) BackgroundOption { return handler.WatchChildren(children, nil) }

// WatchChildrenOf is WatchChildren for children of a Go type, such as *batchv1.Job.
func WatchChildrenOf[C client.Object]() BackgroundOption {
	return handler.WatchChildren(Selector{}, newOf[C]())
}

// CancellationBackoff sets how long a daemon may take to stop by itself before its context
// is canceled. It requires CancellationTimeout. The default is 0.
func CancellationBackoff(backoff time.Duration) BackgroundOption {
	return handler.CancellationBackoff(backoff)
}

// CancellationTimeout sets how long a daemon may take to stop after its context is
// canceled. Then the operator abandons it, and releases its object. Without this option,
// the operator waits for the daemon.
func CancellationTimeout(timeout time.Duration) BackgroundOption {
	return handler.CancellationTimeout(timeout)
}

// CancellationPolling sets the interval of the warnings about a daemon that does not stop.
// The default is Settings.Background.CancellationPolling.
func CancellationPolling(pause time.Duration) BackgroundOption {
	return handler.CancellationPolling(pause)
}

// Operations calls an admission handler only for the given operations: "CREATE", "UPDATE",
// "DELETE", and "CONNECT". The default is all; for mutations, all but deletions.
func Operations(operations ...admissionv1.Operation) AdmissionOption {
	return handler.Operations(operations...)
}

// Subresource calls an admission handler for a subresource, such as "status", instead of
// the object itself. With "*", it is called for the object and all subresources.
func Subresource(name string) AdmissionOption { return handler.Subresource(name) }

// Persistent keeps the webhook of an admission handler in the cluster when the operator
// exits.
func Persistent() AdmissionOption { return handler.Persistent() }

// SideEffects declares that an admission handler has effects besides its answer, but none
// in a dry run.
func SideEffects() AdmissionOption { return handler.SideEffects() }

// IgnoreFailures admits requests while the API server cannot reach the operator.
func IgnoreFailures() AdmissionOption { return handler.IgnoreFailures() }
