package write

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

func version(text string) *object.Body {
	return object.NewBody(map[string]any{"metadata": map[string]any{"resourceVersion": text}})
}

func TestStaleVersions(t *testing.T) {
	tests := map[string]struct {
		floor, seen string
		want        bool
	}{
		"nothing was ever written":                {"", "7", false},
		"our own write is seen":                   {"7", "7", false},
		"something later is seen":                 {"7", "10", false},
		"something earlier is seen":               {"10", "7", true},
		"numbers of different lengths":            {"99", "100", false},
		"numbers larger than 64 bits":             {"99999999999999999999", "100000000000000000000", false},
		"something that cannot be compared":       {"7", "v8", true},
		"against something that cannot be":        {"v7", "8", true},
		"what is equal can always be compared":    {"v7", "v7", false},
		"the lack of a version is no version":     {"7", "", true},
		"a number that is written in another way": {"7", "07", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var s State
			if test.floor != "" {
				s.confirm(version(test.floor))
			}
			if got := s.isStale(test.seen); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAnswerEndsTheUncertainty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := State{mustRead: true}
		s.confirm(version("8"))
		first := time.Now()
		if s.mustRead || s.minVersion != "8" || !s.minVersionAt.Equal(first) {
			t.Errorf("got %+v", s)
		}
		time.Sleep(time.Minute)
		s.confirm(version("8")) // a write that has changed nothing
		if !s.minVersionAt.Equal(first) {
			t.Errorf("got %+v", s)
		}
	})
}

func TestIsReconciled(t *testing.T) {
	tests := map[string]struct {
		state            State
		seen, reconciled string
		want             bool
	}{
		"no pass has ended yet":                      {State{}, "7", "", false},
		"the version of the last pass":               {State{}, "7", "7", true},
		"a later version":                            {State{}, "8", "7", false},
		"the watch is behind what the pass wrote":    {State{minVersion: "8"}, "7", "8", true},
		"the watch is behind a write after the pass": {State{minVersion: "9"}, "7", "7", false},
		"the watch is behind another operator":       {State{minVersion: "9"}, "8", "8", false},
		"an edit waits":                              {State{edits: []call.Edit{{}}}, "7", "7", false},
		"an update waits":                            {State{pending: &Update{}}, "7", "7", false},
		"the last write is uncertain":                {State{mustRead: true}, "7", "7", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.state.IsReconciled(test.seen, test.reconciled); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A watch that is late shows versions from before the end of an object.
func TestOnlyALaterVersionBringsAnObjectBack(t *testing.T) {
	tests := map[string]struct {
		state State
		seen  string
		want  bool
	}{
		"an earlier version":       {State{minVersion: "8"}, "7", false},
		"the version of the end":   {State{minVersion: "8"}, "8", false},
		"a later version":          {State{minVersion: "8"}, "9", true},
		"the end is for good":      {State{minVersion: "8", deleted: true}, "9", false},
		"the version is not known": {State{}, "9", false},
		"it cannot be compared":    {State{minVersion: "8"}, "v9", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.state.isBack(test.seen); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// Edit.Done is called exactly once, whatever becomes of the object.
func TestDroppedEditsAreFinishedOnce(t *testing.T) {
	tests := map[string]func(s *State){
		"another object replaces it": func(s *State) { s.Reset("u-2") },
		"it is gone":                 func(s *State) { s.MarkGone() },
		"it is dropped":              func(s *State) { s.Drop(handler.ErrGone) },
		"all at once":                func(s *State) { s.Drop(handler.ErrGone); s.MarkGone(); s.Reset("u-2") },
		"it was gone before":         func(s *State) { *s = State{uid: "u-1", gone: true} },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			done := 0
			edit := call.Edit{Patch: &patch.Patch{}, Done: func() { done++ }}
			s := &State{uid: "u-1"}
			if name == "it was gone before" {
				end(s)
			}
			s.Reset("u-1")
			s.Add(edit)
			end(s)
			if done != 1 || s.HasEdits() {
				t.Errorf("it was finished %d times", done)
			}
		})
	}
}

// Edits that have arrived must not be written again; those that came since must.
func TestEditsThatHaveArrived(t *testing.T) {
	one, two, three := &patch.Patch{}, &patch.Patch{}, &patch.Patch{}
	body := object.NewBody(m{"metadata": m{"resourceVersion": "7"}, "spec": m{"a": "b"}})
	state := func() *State {
		return &State{edits: []call.Edit{{Patch: one}, {Patch: two}, {Patch: three}}}
	}
	arrived, lost := m{"spec": m{"a": "b"}}, m{"spec": m{"a": "c"}}

	s := state()
	left := s.dropArrived([]inFlight{{merge: arrived, version: "6", patches: []*patch.Patch{one, two}}}, body)
	if len(s.edits) != 1 || s.edits[0].Patch != three || len(left) != 0 {
		t.Errorf("got %+v, %+v", s.edits, left)
	}
	s = state()
	left = s.dropArrived([]inFlight{{merge: lost, version: "6", patches: []*patch.Patch{one}}, {merge: lost, version: "7", patches: []*patch.Patch{two}}}, body)
	if len(s.edits) != 3 || len(left) != 1 || left[0].version != "7" {
		t.Errorf("a write that is bound to the current version may still be on its way: got %+v, %+v", s.edits, left)
	}
	s = state()
	s.dropArrived([]inFlight{{merge: arrived, status: true, patches: []*patch.Patch{one}}}, body)
	s.dropArrived([]inFlight{{merge: arrived, status: true, patches: []*patch.Patch{two}}}, body)
	if len(s.edits) != 3 || !s.edits[0].StatusWritten || !s.edits[1].StatusWritten || s.edits[2].StatusWritten {
		t.Errorf("got %+v", s.edits)
	}
}
