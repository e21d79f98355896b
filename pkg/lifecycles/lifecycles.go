// Package lifecycles decides which handlers run in one pass over an object, and in
// which order: the values of Settings.Execution.Lifecycle.
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

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// Due is a handler whose turn it is, with the number of its attempts so far.
type Due struct {
	*handler.Declaration
	Retries int
}

// Lifecycle chooses which of the due handlers are called in one pass over an
// object, and in which order. It gets them in the order of their declaration,
// and must not add others. What it leaves out is due in the next pass, at once.
//
// Specification: kopf.set_default_lifecycle.
type Lifecycle func(due []Due) []Due

// AllAtOnce calls all of them in order; this is the default. It costs one write
// for all where the others cost one for each.
func AllAtOnce(due []Due) []Due { return due }

// OneByOne calls the first one.
func OneByOne(due []Due) []Due { return due[:min(1, len(due))] }

// Randomized calls one of them by chance.
func Randomized(due []Due) []Due { return OneByOne(Shuffled(due)) }

// Shuffled calls all of them in a random order.
func Shuffled(due []Due) []Due {
	shuffled := slices.Clone(due)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled
}

// AsSoonAsPossible calls the one with the fewest attempts, so that a failing
// handler does not keep the others waiting.
func AsSoonAsPossible(due []Due) []Due {
	sorted := slices.Clone(due)
	slices.SortStableFunc(sorted, func(a, b Due) int { return a.Retries - b.Retries })
	return OneByOne(sorted)
}
