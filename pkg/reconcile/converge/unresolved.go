package converge

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// unresolved is what has happened to the children of one owner, and was not dealt with yet. The
// mutex of the Converger guards it.
type unresolved struct {
	// fields have a decision that has failed, with the hashes of what is wanted.
	fields map[Key]accepted
	// lost are children that others have deleted, until they exist again. The value is set as
	// long as no handler has decided about that. Deleted are those that the operator has deleted
	// itself and that are not gone yet.
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

// lose forgets a child that is gone, and remembers whether another client has deleted it. It is
// called with the mutex.
func (s *state) lose(key Key, uid types.UID) {
	delete(s.known, key)
	defer s.close()
	u := s.open()
	delete(u.fields, key)
	if !u.deleted[uid] {
		u.lost[key] = true
	}
	delete(u.deleted, uid)
}

// isLost reports whether another client has deleted a child, and it does not exist again. It is called with the mutex.
func (s *state) isLost(key Key) bool {
	if s.unresolved == nil {
		return false
	}
	_, lost := s.unresolved.lost[key]
	return lost
}

// find forgets that a child was lost. It is called with the mutex.
func (s *state) find(key Key) {
	if u := s.unresolved; u != nil {
		delete(u.lost, key)
		s.close()
	}
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

// noteDeletion remembers that the operator itself deletes a child.
func (d decisions) noteDeletion(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of.open().deleted[uid] = true
}

// forgetDeletion takes that back.
func (d decisions) forgetDeletion(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of.forgetDeletion(uid)
}

// mustAsk reports whether another client has deleted the child, and no handler has decided about
// that.
func (d decisions) mustAsk(key Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of.unresolved != nil && d.of.unresolved.lost[key]
}

// noteDecision remembers that a lost child must be created again.
func (d decisions) noteDecision(key Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of.open().lost[key] = false
}

// isLost reports whether another client has deleted the child, and it does not exist again.
func (d decisions) isLost(key Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of.isLost(key)
}

// noteFields remembers the fields about which a decision has failed: they must not be restored
// together with something else. Without an error, they are decided.
func (d decisions) noteFields(key Key, drift []convergence.DriftedField, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.of.close()
	u := d.of.open()
	delete(u.fields, key)
	if err != nil {
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
