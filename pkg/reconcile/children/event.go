package children

import (
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Kind is a watched resource whose objects can be children. It is compared by its address.
type Kind struct {
	selector.Resource
	// Selectors are those of children that have found the resource.
	Selectors []selector.Selector
	// Objects returns all objects of the watch, for links that are added later.
	Objects func() []*object.Snapshot
}

// Child is one version of a child.
type Child struct {
	Kind     *Kind
	Snapshot *object.Snapshot
}

// Change is what has happened to a child, from the view of one parent.
type Change string

// The changes of children.
const (
	// Created means that the child is new. After a start, and after a resource is
	// installed, this includes the children that existed before.
	Created Change = "created"
	// Arrived means that the child existed before, and has the link now.
	Arrived Change = "arrived"
	// Modified means that the child has another version.
	Modified Change = "modified"
	// Left means that the child still exists, but does not have the link anymore.
	Left Change = "left"
	// Deleted means that the child does not exist anymore.
	Deleted Change = "deleted"
)

// IsGone reports whether the parent does not have the child anymore.
func (c Change) IsGone() bool { return c == Left || c == Deleted }

// Event is a change of a child with a link.
type Event struct {
	Change Change
	Link   Link
	// Child is the child after the change; after its deletion, it is the last version.
	Child Child
	// Before is the version before the change. It is nil if the child is new.
	Before *object.Snapshot
}

// Follower is told about the changes of the children with a link. Observe is called while the
// index is locked: it must return quickly, and must not call the index.
type Follower interface{ Observe(event Event) }
