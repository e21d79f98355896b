package handler

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ReviewOption is an option of admission handlers.
type ReviewOption func(*Declaration)

func (o ReviewOption) admission(d *Declaration) { o(d) }

// Operations restricts the handler to the operations: "CREATE", "UPDATE", "DELETE",
// "CONNECT". By default, it is called for all operations, except that mutating handlers
// are not called for deletions.
//
// Specification: Admission control, "Handler options".
func Operations(operations ...admissionv1.Operation) ReviewOption {
	return func(d *Declaration) {
		if len(operations) == 0 {
			d.addProblem(errors.New("Operations has no operations: add some, or leave it out to select all"))
		}
		for _, operation := range operations {
			if !slices.Contains(knownOperations, operation) {
				d.addProblem(fmt.Errorf("unknown operation %q: use one of %q", operation, knownOperations))
			}
		}
		d.Webhook.Operations = append(slices.Clip(d.Webhook.Operations), operations...)
	}
}

var knownOperations = []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect}

// Subresource calls the handler for a subresource, such as "status" or "scale", instead
// of the object itself. "*" selects the object and all its subresources.
//
// Specification: Admission control, "Handler options".
func Subresource(name string) ReviewOption {
	return func(d *Declaration) {
		if !subresources.MatchString(name) {
			d.addProblem(fmt.Errorf("invalid subresource %q: specify one, such as \"status\", or use \"*\"", name))
		}
		d.Webhook.Subresource = name
	}
}

var subresources = regexp.MustCompile(`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`)

// Persistent keeps the webhook in a managed configuration when the operator exits, so
// that matching requests are rejected until it is running again. By default, the webhook
// is removed.
//
// Specification: Admission control, "Handler options".
func Persistent() ReviewOption { return func(d *Declaration) { d.Webhook.Persistent = true } }

// SideEffects tells Kubernetes that the handler has side effects, which it must avoid in
// dry runs. By default, handlers have none.
//
// Specification: Admission control, "Handler options".
func SideEffects() ReviewOption { return func(d *Declaration) { d.Webhook.SideEffects = true } }

// IgnoreFailures makes the API server admit requests while the operator is unreachable.
// By default, it rejects them. If the operator is reachable, the response of the handler
// always counts.
//
// Specification: Admission control, "Handler options".
func IgnoreFailures() ReviewOption { return func(d *Declaration) { d.Webhook.IgnoreFailures = true } }

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
	return func(d *Declaration) {
		d.validateDuration("initial delay", delay)
		d.InitialDelay = func(Arguments) time.Duration { return delay }
	}
}

// InitialDelayFunc is like InitialDelay, but the delay can depend on the object. For
// example, use a random delay to avoid calling all handlers at once. Negative delays
// count as zero.
func InitialDelayFunc(delay func(Arguments) time.Duration) BackgroundOption {
	return func(d *Declaration) {
		if delay == nil {
			d.addProblem(errors.New("the function of InitialDelayFunc is nil"))
		}
		d.InitialDelay = delay
	}
}

// Interval sets the time between two calls of a timer: from the end of one call to the
// start of the next, unless the timer is Sharp. A timer without an interval is called
// once after each Idle time or, without Idle, only once.
//
// Specification: Timers, "Intervals".
func Interval(interval time.Duration) ScheduleOption {
	return func(d *Declaration) {
		if interval == 0 {
			d.addProblem(errors.New("the interval is 0, which would call the timer without a delay: leave it out for a timer without an interval"))
		}
		d.Interval = interval
	}
}

// Sharp measures the interval from start to start, regardless of the duration of the
// calls. A call that takes longer than the interval skips the missed ones.
//
// Specification: Timers, "Sharpness".
func Sharp() ScheduleOption { return func(d *Declaration) { d.Sharp = true } }

// Idle calls the timer only if the object has not changed for this time. The object's
// creation and the start of the operator count as changes; changes of the status and of
// the operator's own records do not.
//
// Specification: Timers, "Idling".
func Idle(idle time.Duration) ScheduleOption { return func(d *Declaration) { d.Idle = idle } }

// CancellationBackoff is how long a daemon may take to stop by itself before its context
// is canceled. It has an effect only with CancellationTimeout. The default is 0, which
// cancels the context immediately.
//
// Specification: Daemons, "Timeouts".
func CancellationBackoff(backoff time.Duration) StoppingOption {
	return func(d *Declaration) { d.CancellationBackoff = backoff }
}

// CancellationTimeout is how long a daemon may take to stop after its context is
// canceled. Then the daemon is abandoned, and its object is released. Without this
// option, the context is canceled only when the operator cannot wait any longer, and the
// object is held until the daemon returns.
//
// Specification: Daemons, "Timeouts".
func CancellationTimeout(timeout time.Duration) StoppingOption {
	return func(d *Declaration) { d.CancellationTimeout = &timeout }
}

// CancellationPolling is the interval of the warnings about a daemon that does not stop.
// The default is the setting Background.CancellationPolling.
//
// Specification: Daemons, "Timeouts".
func CancellationPolling(pause time.Duration) StoppingOption {
	return func(d *Declaration) { d.CancellationPolling = pause }
}

// ChildLabel makes children belong to their parent by a label whose value is the uid of the
// parent, instead of by their owner references. Use it for children that the garbage collector
// must not delete, or whose owner references Kubernetes does not allow: children in another
// namespace, and cluster-scoped children of a parent in a namespace.
func ChildLabel(key string) FamilyOption {
	return func(d *Declaration) {
		d.ChildLabel = key
		for _, problem := range validation.IsQualifiedName(key) {
			d.addProblem(fmt.Errorf("kopf.ChildLabel(%q) is not the key of a label: %s", key, problem))
		}
	}
}
