package cause

// Reason is what happened to an object. Its text is persisted as the purpose of
// a handler's progress.
type Reason string

const (
	// Create is an object that was never handled.
	Create Reason = "create"
	// Update is an object whose essence differs from the one handled last.
	Update Reason = "update"
	// Delete is an object that is marked for deletion and still held by our finalizer.
	Delete Reason = "delete"
	// Resume is a handled and unchanged object, seen for the first time by this process.
	Resume Reason = "resume"
	// NoOp is a handled and unchanged object.
	NoOp Reason = "noop"
	// Free is an object that is marked for deletion and no longer ours to hold.
	Free Reason = "free"
	// Gone is an object that does not exist any more.
	Gone Reason = "gone"
)

// Handled reports whether handlers can be called for the reason.
func (r Reason) Handled() bool {
	switch r {
	case Create, Update, Delete, Resume:
		return true
	default:
		return false
	}
}

// Noun is the reason as messages call it: "creation".
func (r Reason) Noun() string {
	switch r {
	case Create:
		return "creation"
	case Update:
		return "update"
	case Delete:
		return "deletion"
	case Resume:
		return "resuming"
	default:
		return string(r)
	}
}

// Change compares the essence now with the one handled last.
type Change int

const (
	// Never: there is no essence that was handled.
	Never Change = iota
	// Same: nothing essential has changed.
	Same
	// Changed: the essences differ.
	Changed
)

// Observation is everything that detection depends on.
type Observation struct {
	Gone     bool   // the object was deleted from the cluster
	Deleting bool   // it is marked for deletion
	Held     bool   // our finalizer is on it
	Change   Change // since it was handled last
	Initial  bool   // it was there before this process and was not handled by it yet
}

// Detect names the reason. Initial reports whether resuming handlers are to be
// mixed into the handling: the object is taken over from an earlier process.
// A creation never is, for nobody has handled that object before.
func Detect(o Observation) (reason Reason, initial bool) {
	switch {
	case o.Gone:
		return Gone, o.Initial
	case o.Deleting && !o.Held:
		return Free, o.Initial
	case o.Deleting:
		return Delete, o.Initial
	case o.Change == Never:
		return Create, false
	case o.Change == Changed:
		return Update, o.Initial
	case o.Initial:
		return Resume, true
	default:
		return NoOp, false
	}
}
