package handler

import (
	"maps"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Child declares a handler of parents that is called for changes of their children.
func Child(parents, children selector.Selector, fn Function, options ...ChildOption) (*Declaration, error) {
	return declare(OnChild, parents, fn, settingsOf(options), func(d *Declaration) { d.Children = children })
}

// ChildCall describes one call of a handler of children.
type ChildCall struct {
	// Reason is Create, Update, or Delete for one child, and Resume for all of them.
	Reason cause.Reason
	// Moved is set if the child has another parent now, or had one before.
	Moved bool
	// Child is the latest version of the child. It is nil for all children.
	Child *object.Snapshot
	// Former is the version of the last call that has succeeded. Nil means that there is none.
	Former *object.Snapshot
	// Children returns the current children. Nil means that there are none.
	Children func() []*object.Snapshot
}

// ForCall returns the handler for one call, with an id below its own. The function is called
// when the call begins.
func ForCall(d *Declaration, id string, of func() ChildCall) *Declaration {
	call := *d
	call.childCall = of
	if id != "" {
		call.ID = d.ID + "/" + id
		call.parent = d
	}
	return &call
}

// DeclaredID returns the id of the handler that was declared. The ID of one call of a handler of
// children, or of drift, is longer, and so is that of calls of Ensure that restore children.
func DeclaredID(d *Declaration) string {
	if (d.Kind == OnRestore || d.childCall != nil || d.Kind == OnDrift) && d.parent != nil {
		return d.parent.ID
	}
	return d.ID
}

// aboutChild returns the call of a handler of children, from a call for the parent.
func (c *Call) aboutChild(d *Declaration, of ChildCall) *Call {
	child := &Call{Declaration: d, Context: c.Context, Attempt: c.Attempt, Child: &of, change: &change{reason: of.Reason}}
	child.change.difference.compute = of.transition
	return child
}

// NewChildCall returns a call of a handler of children.
func NewChildCall(d *Declaration, s CallContext, a Attempt, of ChildCall) *Call {
	return NewCall(d, s, a).aboutChild(d, of)
}

func (of ChildCall) transition() Transition {
	before := StateOfChild(of.Former)
	after := StateOfChild(of.Child)
	if of.Reason == cause.Delete {
		after = nil
	}
	return Transition{Reason: of.Reason, Old: essenceValue(before), New: essenceValue(after), Diff: diff.Compute(present(before), present(after), diff.Full)}
}

// present converts a nil mapping to a nil interface.
func present(state map[string]any) any {
	if state == nil {
		return nil
	}
	return state
}

// StateOfChild returns the part of a child whose changes are told: all but the metadata that
// every write changes. It is nil for nil.
func StateOfChild(child *object.Snapshot) map[string]any {
	if child == nil {
		return nil
	}
	state := maps.Clone(child.Body().Raw())
	if metadata, ok := state["metadata"].(map[string]any); ok {
		state["metadata"] = withoutVersion(metadata)
	}
	return state
}

// withoutVersion returns metadata without what every write changes.
func withoutVersion(metadata map[string]any) map[string]any {
	rest := maps.Clone(metadata)
	for _, key := range []string{"resourceVersion", "generation", "managedFields"} {
		delete(rest, key)
	}
	return rest
}

// LookAt returns a field of an object as a daemon sees it that looks at the field: metadata is without what every write
// changes.
func LookAt(body *object.Body, field object.Path) (value any, exists bool) {
	value, exists = body.Lookup(field)
	metadata, isMapping := value.(map[string]any)
	if isMapping && len(field) == 1 && field[0] == "metadata" {
		return withoutVersion(metadata), true
	}
	return value, exists
}
