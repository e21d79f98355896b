// Package lifecycles decides which handlers run in one pass over an object, and in
// which order. Set one of its functions in Settings.Execution.Lifecycle.
//
//	options.Settings.Execution.Lifecycle = lifecycles.OneByOne
//
// All functions are safe for concurrent use.
//
// Specification: kopf.set_default_lifecycle.
package lifecycles

import (
	"math/rand/v2"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Due is a handler that is due.
type Due struct {
	// ID is the id of the handler, and Param the value of kopf.Param.
	ID    string
	Param any
	// Retries is the number of its attempts so far.
	Retries int
	// Reason names what has happened to the object: creation, update, deletion, or resumption.
	Reason cause.Reason
	// Object is the object. Lifecycles only read it.
	Object *object.Body
}

// Lifecycle chooses which of the due handlers are called in one pass over an
// object, and in which order. It gets them in the order of their declaration,
// and must not add others. Handlers that it omits are due in the next pass, which
// follows at once. To decide by the object, use the Object of the handlers.
//
// Specification: kopf.set_default_lifecycle.
type Lifecycle func(due []Due) []Due

// AllAtOnce calls all due handlers in order. This is the default. It needs one write for
// all of them; the other functions, except Shuffled, need one write for each.
func AllAtOnce(due []Due) []Due { return due }

// OneByOne calls the first handler.
func OneByOne(due []Due) []Due { return due[:min(1, len(due))] }

// Randomized calls one handler, chosen at random.
func Randomized(due []Due) []Due { return OneByOne(Shuffled(due)) }

// Shuffled calls all due handlers in a random order.
func Shuffled(due []Due) []Due {
	shuffled := slices.Clone(due)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled
}

// AsSoonAsPossible calls the handler with the fewest attempts, so that a failing
// handler does not delay the others.
func AsSoonAsPossible(due []Due) []Due {
	sorted := slices.Clone(due)
	slices.SortStableFunc(sorted, func(a, b Due) int { return a.Retries - b.Retries })
	return OneByOne(sorted)
}
