package children

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// callState is the state of a call.
type callState int

const (
	notNeeded callState = iota
	waiting
	running
)

// childCall is a pending call about one child.
type childCall struct {
	id    string // below that of the handler
	uid   types.UID
	order uint64

	former *object.Snapshot // of the last successful call; nil if there is none
	now    state
	taken  state // what a running call is about
	status callState
	// again is set if something has happened since the call began, and tried if there was an
	// attempt, which may have had effects.
	again, tried bool
	// differs is the latest version that is known to differ from the former one.
	differs *object.Snapshot
}

// state is the latest version of a child, and whether the parent still has it.
type state struct {
	snapshot    *object.Snapshot
	gone, moved bool
}

// about returns what a running call is about. The function returns the current children.
func (c *childCall) about(children func() []*object.Snapshot) handler.ChildCall {
	of := handler.ChildCall{Reason: cause.Update, Child: c.taken.snapshot, Former: c.former, Children: children}
	switch {
	case c.taken.gone:
		of.Reason = cause.Delete
		of.Moved = c.taken.moved
	case c.former == nil:
		of.Reason = cause.Create
		of.Moved = c.taken.moved
	}
	return of
}

// isUnknown reports whether the handler has never heard of the child, which is gone.
func (c *childCall) isUnknown() bool {
	return c.now.gone && c.former == nil && c.status != running && !c.tried
}

// begin notes that the call begins.
func (c *childCall) begin() {
	c.taken = c.now
	c.status = running
	c.again = false
	c.tried = true
}

// succeed notes that the call has succeeded, so that the next one begins where it ended.
func (c *childCall) succeed() {
	c.former = c.taken.snapshot
	c.status = waiting
	c.tried = false
	if c.taken.gone {
		c.former = nil
	}
}

// canCompare reports whether it matters for the call if the child has changed at all.
func (c *childCall) canCompare() bool {
	return c.former != nil && !c.now.gone && !c.tried && c.differs != c.now.snapshot
}
