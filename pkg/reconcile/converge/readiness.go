package converge

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/metrics"
)

// Unready returns the children of a parent that are not ready, and those that have failed, as
// texts, if their handlers wait for them and still match the parent. It does not say why, because
// that changes without an event for the parent.
func (c *Converger) Unready(parent types.UID) (waiting, broken []string) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, hash := range c.owners[parent] {
		s := c.states[hash]
		if s == nil || hash != s.owner.Hash() || !s.options.WaitReady || c.calls[caller{parent, s.owner.Handler}] == nil {
			continue
		}
		for _, key := range slices.SortedFunc(maps.Keys(s.known), compareKeys) {
			switch s.known[key].readiness {
			case inProgress:
				waiting = append(waiting, key.String())
			case failed:
				broken = append(broken, key.String())
			}
		}
	}
	return waiting, broken
}

// Seen is what can be seen of a child without an operator.
type Seen struct {
	Key
	// Owner is the hash of its owner, which anybody can copy. Applied is set if the operator has
	// applied the object; nothing else makes it a child.
	Owner   string
	Applied bool
	// Parent and Handler are the owner in words.
	Parent, Handler string
	// Controller is the owner that controls the object, or nil.
	Controller *metav1.OwnerReference
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
		Key: f.Key, Owner: f.owner, Applied: f.isApplied() && f.isBound, Parent: f.marks.Parent, Handler: f.marks.Handler, Ready: f.readiness == current, Failed: f.readiness == failed, Message: d.message,
		Controller: metav1.GetControllerOf(u), Accepted: slices.Sorted(maps.Keys(d.accepted)), Deleting: f.deleting, Kept: f.keep,
	}
}

// Ensured identifies a handler of children of a resource.
type Ensured struct{ Resource, Handler string }

// Counts returns the numbers of the wanted children, by their handlers. It looks at each child.
func (c *Converger) Counts() map[Ensured]metrics.Children {
	all := map[Ensured]metrics.Children{}
	if c == nil {
		return all
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for hash, s := range c.states {
		if hash != s.owner.Hash() {
			continue // it is known by the hash of a former name, too
		}
		of := Ensured{s.owner.Parent.Key.Resource, s.owner.Handler}
		n := all[of]
		for _, f := range s.known {
			switch f.readiness {
			case current:
				n.Ready++
			case inProgress:
				n.Progressing++
			case failed:
				n.Failed++
			}
		}
		for _, f := range s.fights {
			if f.isOpen(longest(c.Delays)) {
				n.Contended++
			}
		}
		all[of] = n
	}
	return all
}

// count counts a write that has changed a child.
func (r *run) count(operation metrics.ChildOperation) {
	r.Metrics.ChildWrite(r.Owner.Parent.Key.Resource, r.Owner.Handler, operation)
}
