package converge

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Unready returns the children of a parent that are not ready, as texts, if their handlers wait for
// them. It does not say why, because that changes without an event for the parent.
func (c *Converger) Unready(parent types.UID) (children []string) {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, hash := range c.owners[parent] {
		s := c.states[hash]
		if s == nil || !s.waits {
			continue
		}
		for _, key := range slices.SortedFunc(maps.Keys(s.known), compareKeys) {
			if s.known[key].readiness != current {
				children = append(children, key.String())
			}
		}
	}
	return children
}

// Seen is what can be seen of a child without an operator.
type Seen struct {
	Key
	// Owner is the hash of its owner, which anybody can copy. Applied is set if the operator has
	// applied the object; nothing else makes it a child.
	Owner   string
	Applied bool
	// Ready and Failed are what kstatus says about the object, and Message says why.
	Ready, Failed bool
	Message       string
	// Accepted are the fields that are left to others.
	Accepted []string
	// Deleting is set while the object is being deleted, and Kept if it is never deleted.
	Deleting, Kept bool
}

// See returns what can be seen of a child of an operator with the name.
func See(u *unstructured.Unstructured, operator string, formers ...string) Seen {
	f := readFact(u, operator, formers...)
	d := f.detail()
	return Seen{
		Key: f.Key, Owner: f.owner, Applied: f.isApplied(), Ready: f.readiness == current, Failed: f.readiness == failed, Message: d.message,
		Accepted: slices.Sorted(maps.Keys(d.accepted)), Deleting: f.deleting, Kept: f.keep,
	}
}
