package write

import (
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// inFlight is a write of edits that may have been committed. If it was, it must not be
// repeated, because a transformation may do harm if applied twice.
type inFlight struct {
	merge   map[string]any
	status  bool           // of the status alone
	version string         // the version of the object that it is bound to
	patches []*patch.Patch // of the edits in it
}

// newInFlight describes a write of edits that is about to be sent.
func newInFlight(edits []call.Edit, merge map[string]any, part string, body *object.Body) inFlight {
	f := inFlight{merge: merge, status: part != "", version: body.ResourceVersion()}
	for _, edit := range edits {
		f.patches = append(f.patches, edit.Patch)
	}
	return f
}

func (f inFlight) has(edit call.Edit) bool { return slices.Contains(f.patches, edit.Patch) }

// settle drops the edits that were stored although the response was lost. It returns the
// writes that may still arrive: those that are bound to this version.
func (s *State) settle(all []inFlight, body *object.Body) []inFlight {
	for _, f := range all {
		if patch.Minimal(body.Raw(), f.merge) == nil {
			s.noteArrived(f)
		}
	}
	return slices.DeleteFunc(all, func(f inFlight) bool { return f.version != body.ResourceVersion() })
}

// noteArrived records that a write was stored. Handlers may have added edits since.
func (s *State) noteArrived(f inFlight) {
	if !f.status {
		s.dropEdits(f.has)
		return
	}
	for i, edit := range s.edits {
		s.edits[i].StatusWritten = edit.StatusWritten || f.has(edit)
	}
}
