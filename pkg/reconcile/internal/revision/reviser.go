package revision

import (
	"slices"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// Reviser decides which handlers must be called again because of their revisions, and what is
// marked on objects. It is safe for concurrent use.
type Reviser struct {
	Rollouts

	// Annotation is the name of the annotation with the marks.
	Annotation string
}

// Subject is one version of an object, as change detection sees it.
type Subject struct {
	Key      object.Key
	Cause    *handler.Cause
	Progress *call.Progress
}

func (s Subject) body() *object.Body { return s.Cause.CallContext.Body }

// wasHandled reports whether the object was handled before, and is not being deleted. A new
// object is handled under the current revisions anyway.
func (s Subject) wasHandled() bool { return s.Cause.Old != nil && !s.body().Deleting() }

// Declared returns the handlers that have a revision, one declaration of each.
func Declared(handlers registry.Handlers) registry.Handlers {
	var revised registry.Handlers
	for _, d := range handlers {
		isKnown := slices.ContainsFunc(revised, func(other *handler.Declaration) bool { return other.ID == d.ID })
		if d.Revision != "" && !isKnown {
			revised = append(revised, d)
		}
	}
	return revised
}

// handlerOf returns the handler of a declaration.
func handlerOf(d *handler.Declaration, key object.Key) Handler {
	return Handler{Resource: key.Resource, ID: d.ID, Revision: d.Revision, Plan: d.Rollout}
}

// Outdated returns the ids of the handlers that must be called again: those that were handled under
// another revision, and whose rollout allows it.
func (v *Reviser) Outdated(revised registry.Handlers, s Subject) []string {
	if len(revised) == 0 || !s.wasHandled() {
		return nil
	}
	var ids []string
	marks := Read(s.body(), v.Annotation)
	for _, d := range revised {
		switch v.stateOf(d, s, marks) {
		case Running:
			ids = append(ids, d.ID)
		case Waiting:
			if len(d.Rollout) == 0 || v.isRunning(handlerOf(d, s.Key), s.Key) {
				ids = append(ids, d.ID)
			}
		}
	}
	return ids
}

// stateOf returns the state of an object according to what is stored on it.
func (v *Reviser) stateOf(d *handler.Declaration, s Subject, marks Marks) State {
	revision, failed, known := marks.Of(d.ID)
	switch {
	case !s.wasHandled() || !d.InScope(s.Cause):
		return Excluded
	case revision == d.Revision && failed:
		return Failed
	case revision == d.Revision && known, !known && d.Baseline:
		return Done
	}
	if stored := s.Progress.Load(d.ID).Stored(); stored != nil && stored.Purpose == cause.Update {
		return Running
	}
	return Waiting
}

// Observe updates the rollouts after an object was seen, or written: the subject has the version.
func (v *Reviser) Observe(revised registry.Handlers, s Subject) {
	if len(revised) == 0 {
		return
	}
	marks := Read(s.body(), v.Annotation)
	for _, d := range revised {
		if len(d.Rollout) > 0 {
			v.Rollouts.Set(handlerOf(d, s.Key), s.Key, v.stateOf(d, s, marks))
		}
	}
}

// IsPending reports whether a rollout has reached an object that is at rest.
func (v *Reviser) IsPending(revised registry.Handlers, key object.Key) bool {
	return slices.ContainsFunc(revised, func(d *handler.Declaration) bool {
		return len(d.Rollout) > 0 && v.isRunning(handlerOf(d, key), key)
	})
}

// Ended returns the annotation for an object whose cycle ends now. Handlers of a new object
// that were not called need not be: they count as done.
func (v *Reviser) Ended(revised registry.Handlers, s Subject, ids []string) map[string]string {
	before := Read(s.body(), v.Annotation)
	marks := v.withBaselines(revised, s, before)
	for _, d := range revised {
		switch takesPart := s.Progress.TakesPart(d.ID); {
		case takesPart && s.Progress.Load(d.ID).Finished():
			marks = marks.With(d.ID, d.Revision, s.Progress.Load(d.ID).Failure)
		case !takesPart && s.Cause.Reason == cause.Create:
			marks = marks.With(d.ID, d.Revision, false)
		}
	}
	return v.annotation(before, marks.Only(ids))
}

// Adopted returns the annotation for a handled object at rest whose handlers have a baseline.
func (v *Reviser) Adopted(revised registry.Handlers, s Subject) map[string]string {
	if len(revised) == 0 {
		return nil
	}
	before := Read(s.body(), v.Annotation)
	return v.annotation(before, v.withBaselines(revised, s, before))
}

// withBaselines adds the marks of handlers whose current revision is the baseline.
func (v *Reviser) withBaselines(revised registry.Handlers, s Subject, marks Marks) Marks {
	for _, d := range revised {
		if _, _, known := marks.Of(d.ID); !known && d.Baseline && s.wasHandled() {
			marks = marks.With(d.ID, d.Revision, false)
		}
	}
	return marks
}

// annotation returns the annotation if the marks have changed.
func (v *Reviser) annotation(before, marks Marks) map[string]string {
	if marks.String() == before.String() {
		return nil
	}
	return map[string]string{v.Annotation: marks.String()}
}

// Census counts the objects of a handler at the start.
type Census struct {
	Handler
	// Never is the number of objects that were not handled under any revision, Others that of
	// those that were handled under another one.
	Never, Others int
}

// Start begins the rollouts with all objects of a resource, and returns the numbers of objects
// that must be handled again.
func (v *Reviser) Start(resource string, revised registry.Handlers, subjects []Subject) []Census {
	return v.count(resource, revised, subjects, v.Begin)
}

// Join adds objects to the rollouts, which another process has handled before. It returns the numbers of those that must be
// handled again.
func (v *Reviser) Join(resource string, revised registry.Handlers, subjects []Subject) []Census {
	return v.count(resource, revised, subjects, v.Add)
}

// count counts objects, and passes their states on.
func (v *Reviser) count(resource string, revised registry.Handlers, subjects []Subject, into func(Handler, map[object.Key]State)) []Census {
	var all []Census
	for _, d := range revised {
		census := Census{Handler: handlerOf(d, object.Key{Resource: resource})}
		states := map[object.Key]State{}
		for _, s := range subjects {
			marks := Read(s.body(), v.Annotation)
			state := v.stateOf(d, s, marks)
			states[s.Key] = state
			if state != Waiting && state != Running {
				continue
			}
			if _, _, known := marks.Of(d.ID); known {
				census.Others++
			} else {
				census.Never++
			}
		}
		all = append(all, census)
		if len(d.Rollout) > 0 {
			into(census.Handler, states)
		}
	}
	return all
}
