// Package rollout decides how many objects a new revision of a handler may reach.
//
// It has no state: everything follows from how many objects have been reached, so that a
// restart continues where the last process stopped.
package rollout

import (
	"errors"
	"fmt"
	"slices"
)

// Step is the number of objects that one step of a rollout adds. Exactly one field is set.
type Step struct {
	Objects int // a number of objects
	Percent int // of all objects; at least one object
}

// First is the first step of a rollout, with a number of objects.
func First(objects int) Step { return Step{Objects: objects} }

// Then is a further step of a rollout, with a number of objects.
func Then(objects int) Step { return Step{Objects: objects} }

// ThenPercent is a further step of a rollout, with a part of all objects, rounded up.
func ThenPercent(percent int) Step { return Step{Percent: percent} }

// size returns the number of objects.
func (s Step) size(total int) int {
	if s.Percent > 0 {
		return max(1, (total*s.Percent+99)/100)
	}
	return s.Objects
}

// Plan contains the steps of a rollout. The last step is repeated until all objects are
// reached. A plan without steps reaches all objects at once.
type Plan []Step

// Equal reports whether two plans have the same steps.
func (p Plan) Equal(other Plan) bool { return slices.Equal(p, other) }

// Validate returns an error for a step without objects.
func (p Plan) Validate() error {
	var problems []error
	for i, step := range p {
		if (step.Objects > 0) == (step.Percent > 0) || step.Objects < 0 || step.Percent < 0 || step.Percent > 100 {
			problems = append(problems, fmt.Errorf("step %d of kopf.Rollout has %d objects and %d percent: it needs at least one object, or 1 to 100 percent", i+1, step.Objects, step.Percent))
		}
	}
	return errors.Join(problems...)
}

// Limit returns the step of the rollout, from 1, and how many of all objects may have begun in
// it. A step is complete when all its objects have ended. If any object has failed, no other
// may begin: new and changed objects end without the rollout, so that their number does not
// show which step has begun.
func (p Plan) Limit(total, ended, failed int) (step, limit int) {
	if len(p) == 0 {
		return 1, total
	}
	for step == 0 || limit <= ended && limit < total {
		limit = min(total, limit+p[min(step, len(p)-1)].size(total))
		step++
	}
	if failed > 0 {
		return step, ended
	}
	return step, limit
}
