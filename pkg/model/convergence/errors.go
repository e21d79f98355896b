package convergence

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ChildKey identifies a child.
type ChildKey struct {
	schema.GroupKind
	Namespace, Name string
}

// String returns "Deployment.apps namespace/name".
func (k ChildKey) String() string { return Describe(k.GroupKind, k.Namespace, k.Name) }

// Describe returns "Deployment.apps namespace/name" for an object.
func Describe(kind schema.GroupKind, namespace, name string) string {
	if namespace == "" {
		return kind.String() + " " + name
	}
	return kind.String() + " " + namespace + "/" + name
}

// ChildError is why a child is not what it should be. The others were applied.
type ChildError struct {
	Child ChildKey
	Err   error
}

// Error names the child.
func (e *ChildError) Error() string { return fmt.Sprintf("the child %s: %v", e.Child, e.Err) }

// Unwrap returns the reason.
func (e *ChildError) Unwrap() error { return e.Err }

// NotOursError is why an existing object is not taken over as a child.
type NotOursError struct {
	Child ChildKey
	// Owner describes the owner of the object.
	Owner string
	// Parent describes the object for which the handler has returned the child.
	Parent string
	// Remedy says what a person can do.
	Remedy string
}

// Error names the owner of the object and the parent, and says what to do.
func (e *NotOursError) Error() string {
	return fmt.Sprintf("the object belongs to %s; it was not changed for %s: %s", e.Owner, e.Parent, e.Remedy)
}

// EmptyError is why children are not deleted although the handler returns none.
type EmptyError struct {
	// Children is the number of children that exist.
	Children int
}

// Error says how to delete them on purpose.
func (e *EmptyError) Error() string {
	return fmt.Sprintf("the handler returned no children, but %d exist; they were not deleted: if that is intended, declare the handler with kopf.AllowEmpty()", e.Children)
}
