package metrics

// Handler is whose attempt is counted.
type Handler struct {
	// Resource is the name of the resource; Kind is what the handler reacts to; ID is
	// that of its declaration. A sub-handler has that of the handler which has
	// registered it: there may be one for every item of a list.
	Resource, Kind, ID string
}

// Outcome is what an attempt has come to.
type Outcome string

// The outcomes of attempts.
const (
	Succeeded Outcome = "succeeded"
	Retried   Outcome = "retried" // it has failed, and will be called again
	Failed    Outcome = "failed"  // for ever
	Ignored   Outcome = "ignored" // it has failed, and nobody minds
	Waiting   Outcome = "waiting" // for its sub-handlers
)

// Reason is what a write to an object is for. A write that is for several things
// is counted once, under the first one of this list.
type Reason string

// The reasons of writes.
const (
	Status    Reason = "status"    // what handlers want in the status, where that is a subresource
	Cleanup   Reason = "cleanup"   // records that are left of a cycle that is over
	Handled   Reason = "handled"   // the end of a cycle: what was handled, and the finalizer of what is going
	Progress  Reason = "progress"  // of a cycle that goes on
	Finalizer Reason = "finalizer" // put on, or taken off, with nothing else
	Patch     Reason = "patch"     // what event handlers, daemons and timers want
	Check     Reason = "check"     // a question whose fault a refusal is; nothing is stored
)

// Answer is what the API server has said to a write.
type Answer string

// The answers to writes.
const (
	Written    Answer = "written"
	Conflict   Answer = "conflict" // somebody else was faster; it is tried again
	Refused    Answer = "refused"  // for its content
	Unanswered Answer = "failed"   // any other error: it may have been stored, or not
)

// RestartReason is why a watch has to be begun again.
type RestartReason string

// The reasons of restarts.
const (
	Interrupted RestartReason = "interrupted" // it has ended, or is too old to go on
	Unavailable RestartReason = "failed"      // the API server does not list, or does not watch
)
