package handler

import (
	"context"
	"maps"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/internal/recomputed"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// ChildFunc handles a change of a child of an object. Like a ChangeFunc, it is called again
// after an error, and after a crash.
type ChildFunc func(ctx context.Context, c *ChildChange) error

// ChildChange contains the arguments of a ChildFunc. Body and all that comes from it are the
// parent's, whose handler it is, and so is the Patch. Use it only while the handler runs, and
// only in the handler's goroutine; the Patch can be shared.
type ChildChange struct {
	writable
	attemptInfo
	of         ChildCall
	transition recomputed.Value[Transition]
}

var _ Arguments = (*ChildChange)(nil)

// ChildCall is what one call of a ChildFunc is about.
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

// NewChildChange returns the arguments of one call. The other arguments are those of a change
// of the parent.
func NewChildChange(parent *Change, of ChildCall) *ChildChange {
	return &ChildChange{writable: parent.writable, attemptInfo: parent.attemptInfo, of: of}
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
	if (d.Kind == OnDisturbance || d.childCall != nil || d.Kind == OnDrift) && d.parent != nil {
		return d.parent.ID
	}
	return d.ID
}

// Reason returns what has happened to the child: ReasonCreate, ReasonUpdate, or ReasonDelete.
// A child counts as created if it is new for the parent, and as deleted if it is not a child of
// the parent anymore; see Moved. ReasonResume means that the call is about all children: see
// Initial.
func (c *ChildChange) Reason() cause.Reason { return c.of.Reason }

// Initial reports whether the call is not about one child, but about all Children: it is the
// first call in this process for a parent that is older than the process. Then Child is nil, and
// there is no Diff. What has happened to the children before the process began is not known.
func (c *ChildChange) Initial() bool { return c.of.Reason == cause.Resume }

// Moved reports whether the child was a child of another parent before, or is one now, instead
// of being created or deleted.
func (c *ChildChange) Moved() bool { return c.of.Moved }

// Child returns the child in its latest version; for a deleted child, it is the last one. It is
// nil if the call is about all children: see Initial.
func (c *ChildChange) Child() *object.Body {
	if c.of.Child == nil {
		return nil
	}
	return c.of.Child.Body()
}

// Children returns all children that the parent has now, sorted by resource, namespace, and
// name. Each of them is decoded when it is used.
func (c *ChildChange) Children() []*object.Body {
	if c.of.Children == nil {
		return nil
	}
	var all []*object.Body
	for _, child := range c.of.Children() {
		all = append(all, child.Body())
	}
	return all
}

// Old returns the child as of the last call that has succeeded, or an absent value if this is
// the first one in this process. It is the entire object, with its status, and without the
// metadata that changes with every write.
func (c *ChildChange) Old() object.Value { return c.difference().Old }

// New returns the child as it is now, or an absent value if it is deleted or if the call is
// about all children. Like Old, it has no metadata that changes with every write.
func (c *ChildChange) New() object.Value { return c.difference().New }

// Diff returns the difference from Old to New. It is empty if the call is about all children.
func (c *ChildChange) Diff() diff.Diff { return c.difference().Diff }

func (c *ChildChange) difference() *Transition {
	return c.transition.Get(func() Transition {
		before := StateOfChild(c.of.Former)
		after := StateOfChild(c.of.Child)
		if c.of.Reason == cause.Delete {
			after = nil
		}
		return Transition{Reason: c.of.Reason, Old: essenceValue(before), New: essenceValue(after), Diff: diff.Compute(present(before), present(after), diff.Full)}
	})
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
		metadata = maps.Clone(metadata)
		for _, key := range []string{"resourceVersion", "generation", "managedFields"} {
			delete(metadata, key)
		}
		state["metadata"] = metadata
	}
	return state
}
