package converge

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// unresolved is what a handler has not decided yet about the children of one owner. The mutex of
// the Converger guards it.
type unresolved struct {
	// fields have a decision that has failed, with the hashes of what is wanted.
	fields map[Key]accepted
	// lost are children that others have deleted, and deleted are those that the operator has
	// deleted itself and that are not gone yet.
	lost    map[Key]bool
	deleted map[types.UID]bool
}

// open returns what is unresolved, to change it. It is called with the mutex.
func (s *state) open() *unresolved {
	if s.unresolved == nil {
		s.unresolved = &unresolved{fields: map[Key]accepted{}, lost: map[Key]bool{}, deleted: map[types.UID]bool{}}
	}
	return s.unresolved
}

// close drops what is empty. It is called with the mutex.
func (s *state) close() {
	if u := s.unresolved; len(u.fields)+len(u.lost)+len(u.deleted) == 0 {
		s.unresolved = nil
	}
}

// lose forgets a child that is gone, and remembers that another client has deleted it. It is
// called with the mutex.
func (s *state) lose(key Key, uid types.UID) {
	delete(s.known, key)
	if !s.asks {
		return
	}
	defer s.close()
	u := s.open()
	if delete(u.fields, key); !u.deleted[uid] {
		u.lost[key] = true
	}
	delete(u.deleted, uid)
}

// retainUnresolved forgets the children that are not wanted anymore. It is called with the mutex.
func (s *state) retainUnresolved(wanted map[Key]bool) {
	if u := s.unresolved; u != nil {
		maps.DeleteFunc(u.fields, func(key Key, _ accepted) bool { return !wanted[key] })
		maps.DeleteFunc(u.lost, func(key Key, _ bool) bool { return !wanted[key] })
		s.close()
	}
}

// forgetDeletion forgets a child that the operator has deleted itself, and that is gone. It is
// called with the mutex.
func (s *state) forgetDeletion(uid types.UID) {
	if u := s.unresolved; u != nil {
		delete(u.deleted, uid)
		s.close()
	}
}

// decisions is what a run may ask and note about it.
type decisions struct {
	mu *sync.Mutex
	of *state
}

func (r *run) decisions() decisions { return decisions{&r.mu, r.state} }

// noteDeletion remembers that the operator itself deletes a child.
func (d decisions) noteDeletion(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of.asks {
		d.of.open().deleted[uid] = true
	}
}

// isLost reports whether another client has deleted the child.
func (d decisions) isLost(key Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of.unresolved != nil && d.of.unresolved.lost[key]
}

// noteCreation remembers that a lost child must be created again.
func (d decisions) noteCreation(key Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if u := d.of.unresolved; u != nil {
		delete(u.lost, key)
		d.of.close()
	}
}

// noteFields remembers the fields about which a decision has failed: they must not be restored
// together with something else. Without an error, they are decided.
func (d decisions) noteFields(key Key, drift []convergence.DriftedField, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.of.close()
	u := d.of.open()
	if delete(u.fields, key); err != nil {
		u.fields[key], _ = accepted(nil).with(convergence.Accept(), drift)
	}
}

// areFailing reports whether a decision about fields of the child has failed.
func (d decisions) areFailing(key Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of.unresolved != nil && len(d.of.unresolved.fields[key]) > 0
}

// isFailing reports whether a decision about the field has failed, and the same is still wanted.
func (d decisions) isFailing(key Key, f convergence.DriftedField) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of.unresolved != nil && d.of.unresolved.fields[key][f.Path] == hashOf(f.Wanted.Any())
}
