package revision

import (
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Tally counts the objects of one rollout by what is stored on them, without a running operator.
// A running operator comes to the same numbers, and chooses the same objects.
type Tally struct {
	// Declaration is that of the handler.
	Declaration *handler.Declaration

	progress *progress
}

// Add adds an object.
func (t *Tally) Add(v *Reviser, s Subject) {
	if t.progress == nil {
		t.progress = &progress{Handler: handlerOf(t.Declaration, s.Key), states: map[object.Key]State{}}
	}
	t.progress.set(s.Key, v.stateOf(t.Declaration, s, Read(s.body(), v.Annotation)))
}

// Standing is where an object is in a rollout.
type Standing struct {
	Numbers

	// Waits is set if the object has not begun, and Ahead is the number of objects that begin
	// before it.
	Waits bool
	Ahead int
	// FailedObject is one that has failed, if any has.
	FailedObject object.Key
}

// Begins reports whether an operator lets the object begin now.
func (s Standing) Begins() bool {
	return s.Waits && s.Ahead < s.Limit-s.Running-s.Done-s.Failed
}

// Of returns where an object is.
func (t *Tally) Of(namespace, name string) Standing {
	if t.progress == nil {
		return Standing{}
	}
	s := Standing{Numbers: t.progress.numbers()}
	for i, key := range t.progress.waiting(s.Waiting) {
		if key.Namespace == namespace && key.Name == name {
			s.Waits = true
			s.Ahead = i
		}
	}
	if s.Failed > 0 {
		s.FailedObject = t.progress.failed()
	}
	return s
}
