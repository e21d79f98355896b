package handler

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/internal/schedule"
	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// ID sets the handler's id instead of the function's name. Progress and results are
// stored under the id, so a renamed handler counts as a new one. If the handler has a
// field, it is appended to the id; what an id cannot contain becomes _, and a hash follows. An id contains ASCII letters and digits, and the
// characters -, _, ., and / between them. With the id of an operator in Python, the
// handler continues its work.
func ID(id string) Option {
	return Option{setting{"ID", all, func(d *Declaration) {
		d.ID = id
		d.idGiven = true
	}}}
}

// DeclaredAt sets the place of a declaration that is not in the source: of one that is read from a
// file. The default is the line of code.
func DeclaredAt(place string) Option {
	return Option{setting{"DeclaredAt", all, func(d *Declaration) { d.DeclaredAt = place }}}
}

// Param passes a value to the handler, so that one function can be declared several
// times with different values. All calls share the value, including concurrent ones.
//
// Specification: Arguments, "Parametrization".
func Param(value any) Option {
	return Option{setting{"Param", all, func(d *Declaration) { d.Param = value }}}
}

// Labels restricts the handler to objects whose labels match all filters. If the option
// is used several times, all filters must match.
//
// Specification: Filtering, "Metadata filters".
func Labels(filters map[string]Matcher) Option {
	return Option{setting{"Labels", objects, func(d *Declaration) { d.Labels = mergeFilters(d.Labels, filters) }}}
}

// Annotations restricts the handler to objects whose annotations match all filters. If
// the option is used several times, all filters must match.
//
// Specification: Filtering, "Metadata filters".
func Annotations(filters map[string]Matcher) Option {
	return Option{setting{"Annotations", objects, func(d *Declaration) { d.Annotations = mergeFilters(d.Annotations, filters) }}}
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

// When calls the handler only if the predicate accepts the object. If the option is used several
// times, all predicates must accept it.
//
// Specification: Filtering, "Callback filters".
func When(predicate Predicate) Option {
	return Option{setting{"When", objects, func(d *Declaration) { d.Predicates = append(d.Predicates, predicate) }}}
}

// WhenDecoded is like When with a predicate that decodes the object. The sample is a pointer to
// the decoded type. An object that does not fit the type counts as a match, and as a misfit, as
// with typed handlers. A filter must not hide a broken object from the handler that is
// responsible for it.
func WhenDecoded(sample runtime.Object, predicate DecodingPredicate) Option {
	return Option{setting{"WhenObject", objects, func(d *Declaration) {
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
	}}}
}

// Field restricts the handler to a field: "spec.size", or several keys if the keys
// contain dots: Field("metadata", "labels", "example.com/role"), which is the same as
// Field("/metadata/labels/example.com~1role"). The field must exist. For updates, it
// must have changed, and must exist before or after the change. It becomes a part of the
// handler's id: "fn/spec.size".
//
// Specification: Filtering, "Field filters".
func Field(path ...string) Option {
	return Option{setting{"Field", fields, func(d *Declaration) {
		if d.Field != nil {
			d.addProblem(errors.New("it has two fields: declare the handler once for each of them"))
		}
		field, err := ParseField(path)
		d.addProblem(err)
		d.Field = field
	}}}
}

// ParseField parses a field's path, as object.PathOf does. It must not be empty.
func ParseField(path []string) (object.Path, error) {
	if len(path) == 0 {
		return nil, errors.New("the field is empty")
	}
	return object.PathOf(path...)
}

// Value filters by the value of the field. For updates, the value before or after the
// change must match. It requires a field, and cannot be combined with ValueBefore or
// ValueAfter.
//
// Specification: Filtering, "Field filters".
func Value(filter Matcher) Option {
	return Option{setting{"Value", fields, func(d *Declaration) { d.Value = filter }}}
}

// ValueBefore filters by the value of the field before the change. It requires a field.
//
// Specification: Filtering, "Change filters".
func ValueBefore(filter Matcher) ChangeOption {
	return changeOption{setting{"ValueBefore", updates, func(d *Declaration) { d.ValueBefore = filter }}}
}

// ValueAfter filters by the value of the field after the change. It requires a field.
//
// Specification: Filtering, "Change filters".
func ValueAfter(filter Matcher) ChangeOption {
	return changeOption{setting{"ValueAfter", updates, func(d *Declaration) { d.ValueAfter = filter }}}
}

// Errors sets how to treat regular errors, which are neither temporary nor permanent.
// The default is ErrorsTemporary.
//
// Specification: Error handling, "Regular errors".
func Errors(mode ErrorsMode) Option {
	return Option{setting{"Errors", retried, func(d *Declaration) { d.Errors = mode }}}
}

// Timeout limits the time over all attempts of the handler, including the delays between
// them. When it is over, a running attempt is canceled, and the handler has failed. If
// the next attempt would begin too late, the handler fails immediately. The default is
// 0, which means no limit. A negative limit is a mistake in the declaration.
//
// Specification: Error handling, "Timeouts".
func Timeout(limit time.Duration) Option {
	return Option{setting{"Timeout", retried, func(d *Declaration) { d.Timeout = limit }}}
}

// Retries limits the total number of attempts, including the first one: 1 means one call
// and no retry. If the last attempt fails, the handler has failed. By default, there is
// no limit. A limit below 1 is a mistake in the declaration.
//
// Specification: Error handling, "Retries".
func Retries(attempts int) Option {
	return Option{setting{"Retries", retried, func(d *Declaration) { d.Retries = &attempts }}}
}

// Backoff sets the delay before the next attempt after a regular error. 0 means no
// delay. The default is the setting Execution.Backoff, which defaults to 60 seconds.
//
// Specification: Error handling, "Backoff".
func Backoff(pause time.Duration) Option {
	return Option{setting{"Backoff", retried, func(d *Declaration) { d.Backoff = backoff.Constant(pause) }}}
}

// ExponentialBackoff doubles the delay after each attempt, from the first delay up to
// the longest; see backoff.Exponential. It replaces Backoff.
func ExponentialBackoff(first, longest time.Duration) Option {
	return Option{setting{"ExponentialBackoff", retried, func(d *Declaration) { d.Backoff = backoff.Exponential(first, longest) }}}
}

// Limit limits how many calls of the handler run at the same time in one operator, for all
// objects together. An object whose handler must wait keeps its turn: the oldest one is next.
// Other handlers of the object do not wait for it, nothing is written meanwhile, and the time
// of Timeout begins with the first call. Declarations with the same id share the calls, and
// so do the sub-handlers that one line of code declares, but not a daemon, a timer, and other
// handlers among each other. A daemon has its place as long as it runs, and gives it up until
// it is retried. By default, only the setting Execution.MaxCalls limits the calls, except
// those of daemons and timers. A limit below 1 is a mistake in the declaration.
func Limit(calls int) Option {
	return Option{setting{"Limit", limited, func(d *Declaration) {
		d.Limit = calls
		if calls < 1 {
			d.addProblem(fmt.Errorf("kopf.Limit(%d) allows no call: it must be at least 1", calls))
		}
	}}}
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
func Revision(revision string) ChangeOption {
	return changeOption{setting{"Revision", revisions, func(d *Declaration) {
		d.Revision = revision
		if revision == "" {
			d.addProblem(errors.New("kopf.Revision is empty: give a name, such as a number"))
		}
	}}}
}

// Baseline adopts the objects that were handled before the handler had a revision: they count
// as handled under the current one, which is stored with one write for each object. It requires
// Revision.
func Baseline() ChangeOption {
	return changeOption{setting{"Baseline", revisions, func(d *Declaration) { d.Baseline = true }}}
}

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
func Rollout(steps ...rollout.Step) ChangeOption {
	return changeOption{setting{"Rollout", revisions, func(d *Declaration) {
		d.Rollout = steps
		d.addProblem(rollout.Plan(steps).Validate())
		if len(steps) == 0 {
			d.addProblem(errors.New("kopf.Rollout has no steps: leave it out to handle all objects at once"))
		}
	}}}
}

// Optional makes a deletion handler optional: it needs no finalizer, does not hold the
// object, and may miss the deletion.
//
// Specification: Handlers, "State-changing handlers".
func Optional() ChangeOption {
	return changeOption{setting{"Optional", deletions, func(d *Declaration) { d.Optional = true }}}
}

// HoldOnFailure keeps the finalizer if the handler fails permanently. The object then
// stays until a person resolves the problem, which a condition and an event report. By
// default, the object is released.
func HoldOnFailure() ChangeOption {
	return changeOption{setting{"HoldOnFailure", deletions, func(d *Declaration) { d.Hold = true }}}
}

// Deleted calls a resume handler also for objects that are being deleted, and a handler of
// children also for parents that are. A daemon runs until the object is gone, and does not hold it.
//
// Specification: Handlers, "Resuming handlers".
func Deleted() Option {
	return Option{setting{"Deleted", deleted, func(d *Declaration) { d.Deleted = true }}}
}

// After calls the handler only when others have succeeded in the cycle.
func After(ids ...string) ChangeOption {
	return changeOption{setting{"After", changes, func(d *Declaration) {
		d.addProblem(checkIDs("After", ids))
		d.After = append(d.After, ids...)
	}}}
}

// AfterFailure calls the handler only when one of others has failed for good in the cycle.
func AfterFailure(ids ...string) ChangeOption {
	return changeOption{setting{"AfterFailure", changes, func(d *Declaration) {
		d.addProblem(checkIDs("AfterFailure", ids))
		d.AfterFailure = append(d.AfterFailure, ids...)
	}}}
}

func checkIDs(name string, ids []string) error {
	if len(ids) == 0 || slices.Contains(ids, "") {
		return fmt.Errorf("kopf.%s needs the ids of other handlers", name)
	}
	return nil
}

// OnMisfit sets what happens when the deletion handler does not fit an object that was
// handled before. The default is Hold.
func OnMisfit(mode MisfitMode) ChangeOption {
	name := map[MisfitMode]string{CallUntyped: "CallUntyped", Release: "ReleaseMisfits"}[mode]
	return changeOption{setting{name, deletions, func(d *Declaration) { d.OnMisfit = mode }}}
}

// EnsuredBy restricts a handler of drift to the children of some handlers.
func EnsuredBy(ids ...string) ChildOption {
	return childOption{setting{"EnsuredBy", drifts, func(d *Declaration) { d.EnsuredBy = append(d.EnsuredBy, ids...) }}}
}

// AllowEmpty accepts that a handler of children returns none although some exist.
func AllowEmpty() ChildOption {
	return childOption{setting{"AllowEmpty", ensured, func(d *Declaration) { d.Ensures.AllowEmpty = true }}}
}

// AdoptExisting takes over objects that exist already and have no owner.
func AdoptExisting() ChildOption {
	return childOption{setting{"AdoptExisting", ensured, func(d *Declaration) { d.Ensures.AdoptExisting = true }}}
}

// WaitReady applies a wave of children only when the earlier ones are ready.
func WaitReady() ChildOption {
	return childOption{setting{"WaitReady", ensured, func(d *Declaration) { d.Ensures.WaitReady = true }}}
}

// WatchIndex also calls a handler of children when the keys or values of an index change.
func WatchIndex(indices ...Table) ChildOption {
	return childOption{setting{"WatchIndex", ensured, func(d *Declaration) {
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
	}}}
}

// Prune also deletes children of protected kinds.
func Prune(kinds ...string) ChildOption {
	return childOption{setting{"Prune", ensured, func(d *Declaration) {
		parsed, err := convergence.ParseKinds(kinds)
		d.addProblem(err)
		d.Ensures.Prune = append(d.Ensures.Prune, parsed...)
	}}}
}

// Recreate deletes and creates children whose change is refused because a field is immutable.
func Recreate(kinds ...string) ChildOption {
	return childOption{setting{"Recreate", ensured, func(d *Declaration) {
		parsed, err := convergence.ParseKinds(kinds)
		d.addProblem(err)
		d.Ensures.Recreate = append(d.Ensures.Recreate, parsed...)
	}}}
}

// Operations restricts the handler to the operations: "CREATE", "UPDATE", "DELETE",
// "CONNECT". By default, it is called for all operations, except that mutating handlers
// are not called for deletions.
//
// Specification: Admission control, "Handler options".
func Operations(operations ...admissionv1.Operation) AdmissionOption {
	return admissionOption{setting{"Operations", reviews, func(d *Declaration) {
		if len(operations) == 0 {
			d.addProblem(errors.New("Operations has no operations: add some, or leave it out to select all"))
		}
		for _, operation := range operations {
			if !slices.Contains(knownOperations, operation) {
				d.addProblem(fmt.Errorf("unknown operation %q: use one of %q", operation, knownOperations))
			}
		}
		d.Webhook.Operations = append(slices.Clip(d.Webhook.Operations), operations...)
	}}}
}

var knownOperations = []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect}

// Subresource calls the handler for a subresource, such as "status" or "scale", instead
// of the object itself. "*" selects the object and all its subresources.
//
// Specification: Admission control, "Handler options".
func Subresource(name string) AdmissionOption {
	return admissionOption{setting{"Subresource", reviews, func(d *Declaration) {
		if !subresources.MatchString(name) {
			d.addProblem(fmt.Errorf("invalid subresource %q: specify one, such as \"status\", or use \"*\"", name))
		}
		d.Webhook.Subresource = name
	}}}
}

var subresources = regexp.MustCompile(`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`)

// Persistent keeps the webhook in a managed configuration when the operator exits, so
// that matching requests are rejected until it is running again. By default, the webhook
// is removed.
//
// Specification: Admission control, "Handler options".
func Persistent() AdmissionOption {
	return admissionOption{setting{"Persistent", reviews, func(d *Declaration) { d.Webhook.Persistent = true }}}
}

// SideEffects tells Kubernetes that the handler has side effects, which it must avoid in
// dry runs. By default, handlers have none.
//
// Specification: Admission control, "Handler options".
func SideEffects() AdmissionOption {
	return admissionOption{setting{"SideEffects", reviews, func(d *Declaration) { d.Webhook.SideEffects = true }}}
}

// IgnoreFailures makes the API server admit requests while the operator is unreachable.
// By default, it rejects them. If the operator is reachable, the response of the handler
// always counts.
//
// Specification: Admission control, "Handler options".
func IgnoreFailures() AdmissionOption {
	return admissionOption{setting{"IgnoreFailures", reviews, func(d *Declaration) { d.Webhook.IgnoreFailures = true }}}
}

// reservedIDs cannot be ids of handlers, because they are paths that call all handlers
// of a kind.
const (
	AllValidating = "validating"
	AllMutating   = "mutating"
)

// InitialDelay delays the first call each time the daemon or timer starts: when the object
// is created, when the operator starts, and when the object matches the filters again. The
// default is 0.
//
// Specification: Daemons, "Postponing"; Timers, "Postponing".
func InitialDelay(delay time.Duration) BackgroundOption {
	return backgroundOption{setting{"InitialDelay", delayed, func(d *Declaration) {
		d.validateDuration("initial delay", delay)
		d.InitialDelay = func(*Call) time.Duration { return delay }
	}}}
}

// InitialDelayFunc is like InitialDelay, but the delay can depend on the object. For
// example, use a random delay to avoid calling all handlers at once. Negative delays
// count as zero.
func InitialDelayFunc(delay func(*Call) time.Duration) BackgroundOption {
	return backgroundOption{setting{"InitialDelayFunc", delayed, func(d *Declaration) {
		if delay == nil {
			d.addProblem(errors.New("the function of InitialDelayFunc is nil"))
		}
		d.InitialDelay = delay
	}}}
}

// Interval sets the time between two calls of a timer: from the end of one call to the
// start of the next, unless the timer is Sharp. A timer without an interval is called
// once after each Idle time or, without Idle, only once.
//
// Specification: Timers, "Intervals".
func Interval(interval time.Duration) BackgroundOption {
	return backgroundOption{setting{"Interval", timers, func(d *Declaration) {
		if interval == 0 {
			d.addProblem(errors.New("the interval is 0, which would call the timer without a delay: leave it out for a timer without an interval"))
		}
		d.Interval = interval
	}}}
}

// IntervalFunc is like Interval, but the interval is computed after each call, from the object as it is then. An
// interval that is not positive fails the call.
func IntervalFunc(interval func(*Call) time.Duration) BackgroundOption {
	return backgroundOption{setting{"IntervalFunc", timers, func(d *Declaration) {
		if interval == nil {
			d.addProblem(errors.New("the function of IntervalFunc is nil"))
		}
		d.IntervalFunc = interval
	}}}
}

// ScheduleOption is an option of a schedule.
type ScheduleOption struct{ set func(*Schedule) error }

// Scheduled calls a timer at the times of a schedule of cron.
func Scheduled(text string, options ...ScheduleOption) BackgroundOption {
	return scheduled("Schedule", Schedule{Text: text}, nil, options)
}

// ScheduleFunc is like Scheduled, but the schedule can depend on the object.
func ScheduleFunc(of func(*Call) (string, error), options ...ScheduleOption) BackgroundOption {
	var problem error
	if of == nil {
		problem = errors.New("the function of ScheduleFunc is nil")
	}
	return scheduled("ScheduleFunc", Schedule{Of: of}, problem, options)
}

func scheduled(name string, s Schedule, problem error, options []ScheduleOption) BackgroundOption {
	return backgroundOption{setting{name, timers, func(d *Declaration) {
		d.addProblem(problem)
		if d.Schedule != nil {
			d.addProblem(errors.New("it has two schedules: declare the timer once for each of them"))
		}
		d.addProblem(s.apply(name, options))
		if problem == nil {
			d.Schedule = &s
		}
	}}}
}

// apply sets the defaults and the options of a schedule.
func (s *Schedule) apply(name string, options []ScheduleOption) error {
	s.Zone = time.UTC
	s.CatchUp = 1
	var problems []error
	for _, option := range options {
		if option.set == nil {
			problems = append(problems, fmt.Errorf("one of the options of kopf.%s is empty", name))
			continue
		}
		problems = append(problems, option.set(s))
	}
	return errors.Join(problems...)
}

// CheckSchedule returns an error if a timer cannot be called by the schedule with the options.
func CheckSchedule(text string, options ...ScheduleOption) error {
	s := Schedule{Text: text}
	if err := s.apply("CheckSchedule", options); err != nil {
		return err
	}
	return s.parse()
}

// TimeZone sets the time zone of schedules that name none.
func TimeZone(name string) ScheduleOption {
	return ScheduleOption{func(s *Schedule) error {
		zone, err := schedule.Zone(name)
		if err == nil {
			s.Zone = zone
		}
		return err
	}}
}

// CatchUp makes up for runs that were missed.
func CatchUp(runs int) ScheduleOption {
	return ScheduleOption{func(s *Schedule) error {
		s.CatchUp = runs
		if runs < 0 {
			return fmt.Errorf("kopf.CatchUp(%d) is negative: use 0 to skip all runs that were missed", runs)
		}
		return nil
	}}
}

// Sharp measures the interval from start to start, regardless of the duration of the
// calls. A call that takes longer than the interval skips the missed ones.
//
// Specification: Timers, "Sharpness".
func Sharp() BackgroundOption {
	return backgroundOption{setting{"Sharp", timers, func(d *Declaration) { d.Sharp = true }}}
}

// Idle calls a timer, or a handler of creations, updates, and fields, only if the object has not changed for this
// time. The object's creation and the start of the operator count as changes; changes of the status and of
// the operator's own records do not.
//
// Specification: Timers, "Idling".
func Idle(idle time.Duration) Option {
	return Option{setting{"Idle", idling, func(d *Declaration) { d.Idle = idle }}}
}

// CancellationBackoff is how long a daemon may take to stop by itself before its context
// is canceled. It has an effect only with CancellationTimeout. The default is 0, which
// cancels the context immediately.
//
// Specification: Daemons, "Timeouts".
func CancellationBackoff(backoff time.Duration) BackgroundOption {
	return backgroundOption{setting{"CancellationBackoff", daemons, func(d *Declaration) { d.CancellationBackoff = backoff }}}
}

// CancellationTimeout is how long a daemon may take to stop after its context is
// canceled. Then the daemon is abandoned, and its object is released. Without this
// option, the context is canceled only when the operator cannot wait any longer, and the
// object is held until the daemon returns.
//
// Specification: Daemons, "Timeouts".
func CancellationTimeout(timeout time.Duration) BackgroundOption {
	return backgroundOption{setting{"CancellationTimeout", daemons, func(d *Declaration) { d.CancellationTimeout = &timeout }}}
}

// CancellationPolling is the interval of the warnings about a daemon that does not stop.
// The default is the setting Background.CancellationPolling.
//
// Specification: Daemons, "Timeouts".
func CancellationPolling(pause time.Duration) BackgroundOption {
	return backgroundOption{setting{"CancellationPolling", daemons, func(d *Declaration) { d.CancellationPolling = pause }}}
}

// WakeOn wakes a daemon that waits when a field of its object changes.
func WakeOn(path ...string) BackgroundOption {
	return backgroundOption{setting{"WakeOn", daemons, func(d *Declaration) {
		field, err := ParseField(path)
		d.addProblem(err)
		d.WakeOn = append(slices.Clip(d.WakeOn), field)
	}}}
}

// WatchChildren makes a daemon know the children of its object, and wakes it when they change. The Go type replaces the
// selector.
func WatchChildren(sel selector.Selector, of runtime.Object) BackgroundOption {
	return backgroundOption{setting{"WatchChildren", daemons, func(d *Declaration) {
		d.addProblem(sel.Err())
		if of == nil && sel == (selector.Selector{}) {
			d.addProblem(errors.New("kopf.WatchChildren has no resource of children: specify one with kopf.Resource(...), or use kopf.WatchChildrenOf with a pointer to a Go type"))
		}
		d.Owned = append(slices.Clip(d.Owned), Owned{Selector: sel, Object: of})
	}}}
}

// ChildLabel makes children belong to their parent by a label whose value is the uid of the
// parent, instead of by their owner references. Use it for children that the garbage collector
// must not delete, or whose owner references Kubernetes does not allow: children in another
// namespace, and cluster-scoped children of a parent in a namespace.
func ChildLabel(key string) LabelOption {
	return labelOption{setting{"ChildLabel", children, func(d *Declaration) {
		d.ChildLabel = key
		for _, problem := range validation.IsQualifiedName(key) {
			d.addProblem(fmt.Errorf("kopf.ChildLabel(%q) is not the key of a label: %s", key, problem))
		}
	}}}
}
