package write

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// Edits that have arrived must not be written again; those that came since must.
func TestEditsThatHaveArrived(t *testing.T) {
	one, two, three := &patch.Patch{}, &patch.Patch{}, &patch.Patch{}
	body := object.NewBody(m{"metadata": m{"resourceVersion": "7"}, "spec": m{"a": "b"}})
	state := func() *State {
		return &State{edits: []call.Edit{{Patch: one}, {Patch: two}, {Patch: three}}}
	}
	arrived, lost := m{"spec": m{"a": "b"}}, m{"spec": m{"a": "c"}}

	s := state()
	left := s.settle([]inFlight{{merge: arrived, version: "6", patches: []*patch.Patch{one, two}}}, body)
	if len(s.edits) != 1 || s.edits[0].Patch != three || len(left) != 0 {
		t.Errorf("got %+v, %+v", s.edits, left)
	}
	s = state()
	left = s.settle([]inFlight{{merge: lost, version: "6", patches: []*patch.Patch{one}}, {merge: lost, version: "7", patches: []*patch.Patch{two}}}, body)
	if len(s.edits) != 3 || len(left) != 1 || left[0].version != "7" {
		t.Errorf("a write that is bound to the current version may still be on its way: got %+v, %+v", s.edits, left)
	}
	s = state()
	s.settle([]inFlight{{merge: arrived, status: true, patches: []*patch.Patch{one}}}, body)
	s.settle([]inFlight{{merge: arrived, status: true, patches: []*patch.Patch{two}}}, body)
	if len(s.edits) != 3 || !s.edits[0].StatusWritten || !s.edits[1].StatusWritten || s.edits[2].StatusWritten {
		t.Errorf("got %+v", s.edits)
	}
}
