package cause

// Reason names the event in the life of an object that handlers are called for. Its text is stored as the purpose of a handler's
// progress.
type Reason string

const (
	// Create means that the object was never handled.
	Create Reason = "create"
	// Update means that the essence differs from the one that was last handled.
	Update Reason = "update"
	// Delete means that the object is marked for deletion and has our finalizer.
	Delete Reason = "delete"
	// Resume means that the object is handled and unchanged, and new to this process.
	Resume Reason = "resume"
	// NoOp means that the object is handled and unchanged.
	NoOp Reason = "noop"
	// Free means that the object is marked for deletion and does not have our finalizer.
	Free Reason = "free"
	// Gone means that the object no longer exists.
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

// IsChange reports whether the reason is a change of the essence: only these lead to another one
// that was handled last.
func (r Reason) IsChange() bool { return r == Create || r == Update }

// Noun returns the reason as a noun for messages: "creation".
func (r Reason) Noun() string {
	switch r {
	case Create:
		return "creation"
	case Delete:
		return "deletion"
	case Resume:
		return "resuming"
	default:
		return string(r)
	}
}

// Change is the result of comparing the current essence with the last handled one.
type Change int

const (
	// Never means that no essence was handled.
	Never Change = iota
	// Same means that the essences are equal.
	Same
	// Changed means that the essences differ.
	Changed
)

// Observation contains everything that Detect depends on.
type Observation struct {
	Gone     bool   // the object was deleted from the cluster
	Deleting bool   // the object is marked for deletion
	Held     bool   // the object has our finalizer
	Change   Change // since the object was last handled
	Initial  bool   // the object is older than this process and was not handled by it yet
}

// Detect returns the reason. Initial reports whether resume handlers are called as well,
// because the object is taken over from an earlier process. It is never true for a
// creation, because no process has handled that object before.
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
