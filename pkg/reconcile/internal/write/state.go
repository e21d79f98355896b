package write

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// State is what the writer keeps of one object between passes. There is one for
// every object that is watched: every field must be worth its bytes. The zero value
// is an object of which nothing is known.
type State struct {
	uid types.UID
	// minVersion is the version of the last write, or one that is known otherwise:
	// no pass acts on an older one. Versions grow across objects of one name.
	minVersion   string
	minVersionAt time.Time
	// pending is the update that could not be written yet.
	pending *Update
	// edits are what handlers want to be written, in the order of their calls.
	edits []execution.Edit
	// uncertain: it is not known whether the last write was committed.
	uncertain bool
	// gone: the object does not exist anymore, or is released for deletion.
	gone bool
}

// UID returns the uid of the object; empty if it is not known.
func (s *State) UID() types.UID { return s.uid }

// Gone reports whether the object is gone for the operator: deleted, replaced, or
// released by the removal of the last finalizer.
func (s *State) Gone() bool { return s.gone }

// Reset forgets the object in favor of another one of its name. Only the minimal
// version survives. It does nothing if the uid is the same.
func (s *State) Reset(uid types.UID) {
	if s.uid == uid {
		s.uid = uid // the string of the current snapshot, so that the earlier one can be freed
		return
	}
	s.Drop()
	*s = State{uid: uid, minVersion: s.minVersion, minVersionAt: s.minVersionAt}
}

// MarkGone ends all writes to this object.
func (s *State) MarkGone() {
	s.Drop()
	*s = State{uid: s.uid, minVersion: s.minVersion, minVersionAt: s.minVersionAt, gone: true}
}

// Drop gives up what is not written yet, and tells the authors of the edits.
func (s *State) Drop() {
	s.pending = nil
	s.finishEdits()
}

// finishEdits removes all edits, and tells their authors.
func (s *State) finishEdits() { s.dropEdits(func(execution.Edit) bool { return true }) }

// Add takes what handlers want to be written. Edits for another uid than the
// current one must not be added.
func (s *State) Add(edits ...execution.Edit) {
	if s.gone {
		for _, edit := range edits {
			edit.Finish()
		}
		return
	}
	s.edits = append(s.edits, edits...)
}

// HasEdits reports whether an edit waits to be written.
func (s *State) HasEdits() bool { return len(s.edits) > 0 }

// NotOlderThan sets the version that the next pass must have seen: another operator
// has written it.
func (s *State) NotOlderThan(version string) {
	s.minVersion, s.minVersionAt = version, time.Now()
}

// SeenGone notes whether the object, as the watch last showed it, does not exist
// anymore.
func (s *State) SeenGone(gone bool) { s.gone = gone }

// IsReconciled reports whether a pass would find nothing new at this version: it is
// the one that the last pass ended with, or an older one than that pass wrote.
func (s *State) IsReconciled(version, reconciled string) bool {
	if reconciled == "" || s.pending != nil || len(s.edits) > 0 || s.uncertain {
		return false
	}
	if s.isStale(version) {
		return reconciled == s.minVersion
	}
	return version == reconciled
}

// isStale reports whether the version is older than the minimal one.
func (s *State) isStale(version string) bool {
	if s.minVersion == "" || version == s.minVersion {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, s.minVersion)
	// Versions that cannot be compared are not from Kubernetes' own API server: only
	// an equal one is known to be fresh.
	return err != nil || order < 0
}

// confirm notes a version that the API server answered with: nothing is uncertain.
func (s *State) confirm(body *object.Body) {
	s.uncertain = false
	if version := body.ResourceVersion(); version != s.minVersion {
		s.NotOlderThan(version)
	}
}

// markStatusWritten marks all edits: their part of the status is written.
func (s *State) markStatusWritten() {
	for i := range s.edits {
		s.edits[i].StatusWritten = true
	}
}

// dropEdits removes the edits for which the condition holds, and tells their authors.
func (s *State) dropEdits(condition func(execution.Edit) bool) {
	kept := s.edits[:0]
	for _, edit := range s.edits {
		if condition(edit) {
			edit.Finish()
		} else {
			kept = append(kept, edit)
		}
	}
	clear(s.edits[len(kept):])
	s.edits = kept
	if len(kept) == 0 {
		s.edits = nil
	}
}
