package metrics

// Handler identifies the handler whose attempt is counted.
type Handler struct {
	// Resource is the name of the resource; Kind is what the handler reacts to; ID is
	// the id of its declaration. A sub-handler has the id of the handler that registered
	// it, as there may be one for every item of a list.
	Resource, Kind, ID string
}

// Outcome is the outcome of an attempt.
type Outcome string

// The outcomes of attempts.
const (
	Succeeded Outcome = "succeeded"
	Retried   Outcome = "retried" // failed, and the handler will be called again
	Failed    Outcome = "failed"  // permanently
	Ignored   Outcome = "ignored" // failed, and the errors of the handler are ignored
	Waiting   Outcome = "waiting" // for sub-handlers
)

func outcomes() []Outcome { return []Outcome{Succeeded, Retried, Failed, Ignored, Waiting} }

// Review is the outcome of the call of an admission handler.
type Review string

// The outcomes of calls of admission handlers.
const (
	Admitted     Review = "admitted"
	Denied       Review = "rejected" // by a decision of the handler, or because the object does not fit its Go type
	ReviewFailed Review = "failed"   // the handler returned another error, panicked, or had no time left; the request is rejected
)

func reviews() []Review { return []Review{Admitted, Denied, ReviewFailed} }

// ConversionOutcome is the outcome of the conversion of an object.
type ConversionOutcome string

// The outcomes of conversions.
const (
	Converted        ConversionOutcome = "converted"
	ConversionFailed ConversionOutcome = "failed" // with it, all other objects of the request fail
)

// Reason is the purpose of a write to an object. A write with several purposes is
// counted once, under the first of this list.
type Reason string

// The reasons of writes.
const (
	Status    Reason = "status"    // results and patches of the status, where that is a subresource
	Cleanup   Reason = "cleanup"   // removal of records left by a finished cycle
	Handled   Reason = "handled"   // the end of a cycle: the diff base, and the finalizer of deleted objects
	Progress  Reason = "progress"  // of an open cycle
	Finalizer Reason = "finalizer" // added or removed, and nothing else
	Patch     Reason = "patch"     // patches of event handlers, daemons and timers
	Check     Reason = "check"     // a dry run to find the handler whose part is rejected; stores nothing
)

func reasons() []Reason {
	return []Reason{Status, Cleanup, Handled, Progress, Finalizer, Patch, Check}
}

// ChildOperation names the effect of a write on a child.
type ChildOperation string

// The operations on children.
const (
	Created  ChildOperation = "created"
	Changed  ChildOperation = "changed"  // the handler wants something else
	Restored ChildOperation = "restored" // another client had changed it
	Deleted  ChildOperation = "deleted"  // it is not wanted anymore, or must be recreated
)

func childOperations() []ChildOperation {
	return []ChildOperation{Created, Changed, Restored, Deleted}
}

// Answer is the answer of the API server to a write.
type Answer string

// The answers to writes.
const (
	Written    Answer = "written"
	Conflict   Answer = "conflict" // another client was faster; the write is repeated
	Rejected   Answer = "rejected" // for its content
	Unanswered Answer = "failed"   // any other error: the write may or may not be stored
)

func answers() []Answer { return []Answer{Written, Conflict, Rejected, Unanswered} }

// HeldReason is why some handlers of an object cannot be called.
type HeldReason string

// The reasons of held objects.
const (
	Misfit    HeldReason = "misfit"    // the object does not fit the Go type of a handler
	Suspended HeldReason = "suspended" // a person asked for it with an annotation
	Failure   HeldReason = "failure"   // a deletion handler has failed, and holds the object
)

// RestartReason is why a watch is restarted.
type RestartReason string

// The reasons of restarts.
const (
	Interrupted RestartReason = "interrupted" // it ended early, or its version is too old
	Rewound     RestartReason = "rewound"     // the list is older than what was known: of another history
	Unavailable RestartReason = "failed"      // the API server rejects the list or the watch
)
