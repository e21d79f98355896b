package write

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// State is the writer's state of one object between passes. Every watched object has one, so
// each field must be worth its memory. The zero value is an unknown object.
type State struct {
	uid types.UID
	// minVersion is the version of the last write, or a version known in another way: no
	// pass uses an older one. Versions increase across objects of the same name.
	minVersion   string
	minVersionAt time.Time
	// pending is the update that could not be written yet.
	pending *Update
	// edits are the changes that handlers request, in the order of their calls.
	edits []call.Edit
	// mustRead is set if the next pass must read the object directly: the last write may or may not
	// have been committed, or a conflict has shown that there is a later version.
	mustRead bool
	// gone is set if the object no longer exists, or is released for deletion.
	gone bool
	// deleted is set if the object is gone for good: not even a later version brings it back.
	deleted bool
	// missing is set if the object is gone only because a list does not have it. If the list has selectors, it can exist.
	missing bool
}

// UID returns the uid of the object, or "" if it is unknown.
func (s *State) UID() types.UID { return s.uid }

// Gone reports whether the object no longer exists for the operator: it was deleted or
// replaced, or its last finalizer was removed.
func (s *State) Gone() bool { return s.gone }

// Reset prepares the state for another object of the same name. It keeps only the minimum
// version. It does nothing if the uid is the same.
func (s *State) Reset(uid types.UID) {
	if s.uid == uid {
		s.uid = uid // shares memory with the current snapshot, so that the earlier one can be freed
		return
	}
	s.Drop(handler.ErrGone)
	*s = State{uid: uid, minVersion: s.minVersion, minVersionAt: s.minVersionAt}
}

// markGoneAt is MarkGone for an object that certainly does not exist at a version, which is
// later than all versions of the object.
func (s *State) markGoneAt(version string) {
	s.MarkGone()
	s.NotOlderThan(version)
}

// isBack reports whether the watch shows a version of an object that counts as gone, although
// it is later than the end of that object. The object exists after all.
func (s *State) isBack(version string) bool {
	return !s.deleted && s.minVersion != "" && version != s.minVersion && !s.isStale(version)
}

// MarkGone ends all writes to this object.
func (s *State) MarkGone() {
	s.Drop(handler.ErrGone)
	*s = State{uid: s.uid, minVersion: s.minVersion, minVersionAt: s.minVersionAt, gone: true, deleted: s.deleted, missing: s.missing}
}

// Drop discards the pending update and edits, and tells the authors of the edits why.
func (s *State) Drop(why error) {
	s.pending = nil
	s.refuseEdits(why)
}

// refuseEdits removes all edits, and tells their authors why.
func (s *State) refuseEdits(why error) {
	refused := s.edits
	s.edits = nil
	for _, edit := range refused {
		edit.Refuse(why)
	}
}

// finishEdits removes all edits, because they are written, and notifies their authors.
func (s *State) finishEdits() { s.dropEdits(func(call.Edit) bool { return true }) }

// Add adds the edits of handlers. Do not add edits for another uid.
func (s *State) Add(edits ...call.Edit) {
	if s.gone {
		for _, edit := range edits {
			edit.Refuse(handler.ErrGone)
		}
		return
	}
	s.edits = append(s.edits, edits...)
}

// Keep keeps an update for the next pass, because this one has failed. It takes the place of an
// update that could not be written, whose edits may have been committed.
func (s *State) Keep(u Update) {
	if s.gone {
		return
	}
	if before := s.pending; before != nil {
		u.inFlight = before.inFlight
	}
	s.pending = &u
}

// HasPending reports whether an earlier pass could not write its update.
func (s *State) HasPending() bool { return s.pending != nil }

// HasEdits reports whether an edit waits to be written.
func (s *State) HasEdits() bool { return len(s.edits) > 0 }

// NotOlderThan sets the minimum version for the next pass, because another operator has
// written it.
func (s *State) NotOlderThan(version string) {
	s.minVersion = version
	s.minVersionAt = time.Now()
}

// BeginAnew forgets the known versions, and the end of the object: in another history of the cluster,
// the versions are lower, and the object can exist.
func (s *State) BeginAnew() {
	s.minVersion = ""
	s.exists()
	s.deleted = false
}

// SeenGone records whether the object that the watch showed last no longer exists.
func (s *State) SeenGone(gone bool) {
	s.gone = gone
	s.missing = false
}

// SeenMissing records that a list does not have the object that the watch showed last. It can exist if the list has
// selectors. No pass handles the object until the watch shows that, too.
func (s *State) SeenMissing() {
	s.gone = true
	s.missing = true
}

// exists records that the object is not gone.
func (s *State) exists() {
	s.gone = false
	s.missing = false
}

// IsReconciled reports whether a pass would find nothing to do at this version: it is the
// version at the end of the last pass, or older than a write of that pass.
func (s *State) IsReconciled(version, reconciled string) bool {
	if s.pending != nil || len(s.edits) > 0 || s.mustRead {
		return false
	}
	if s.isStale(version) {
		return reconciled == s.minVersion
	}
	return version == reconciled
}

// isStale reports whether the version is older than the minimum version.
func (s *State) isStale(version string) bool {
	if s.minVersion == "" || version == s.minVersion {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, s.minVersion)
	// Incomparable versions do not come from the API server of Kubernetes: only an
	// equal version is known to be fresh.
	return err != nil || order < 0
}

// confirm records a version from a response of the API server.
func (s *State) confirm(body *object.Body) {
	s.mustRead = false
	version := body.ResourceVersion()
	if version != s.minVersion {
		s.NotOlderThan(version)
	}
}

// dropEdits removes the edits for which the condition holds, and notifies their authors.
func (s *State) dropEdits(condition func(call.Edit) bool) {
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

// inFlight is a write of edits that may have been committed. If it was, it must not be
// repeated, because a transformation may do harm if applied twice.
type inFlight struct {
	merge   map[string]any
	status  bool           // of the status alone
	version string         // the version of the object that it is bound to
	patches []*patch.Patch // of the edits in it
}

func (f inFlight) has(edit call.Edit) bool { return slices.Contains(f.patches, edit.Patch) }

// dropArrived drops the edits that were stored although the response was lost. It returns the
// writes that may still arrive: those that are bound to this version.
func (s *State) dropArrived(all []inFlight, body *object.Body) []inFlight {
	for _, f := range all {
		if patch.Minimal(body.Raw(), f.merge) != nil {
			continue
		}
		if !f.status {
			s.dropEdits(f.has)
			continue
		}
		for i, edit := range s.edits { // handlers may have added some since
			s.edits[i].StatusWritten = edit.StatusWritten || f.has(edit)
		}
	}
	return slices.DeleteFunc(all, func(f inFlight) bool { return f.version != body.ResourceVersion() })
}
