// Package tilingtest checks in tests that the changes that handlers see lie end to end: no
// handler sees a change twice, and none misses one. This package carries no compatibility
// promise.
//
// A Ledger knows only what a handler was given and what was stored. It does not know the rules
// of the engine, and therefore cannot repeat their mistakes.
package tilingtest

import (
	"fmt"
	"maps"
	"slices"
)

// Ledger follows the handlers of one object. A state is any text that is the same for the same
// part of the object that a handler sees. Ledger is not safe for concurrent use.
type Ledger struct {
	// settled contains the state up to which each handler has recorded the changes. A
	// handler that is not in it can continue from any state.
	settled map[string]string
	// tried and ended contain the handlers that were called or have ended, and whose
	// attempts are not recorded yet.
	tried map[string]bool
	ended map[string]string
	// open contains the handlers with a recorded attempt that have not ended.
	open map[string]bool
	// loose contains the handlers that something else may have called.
	loose    map[string]bool
	problems []string
}

// New returns the Ledger of an object that was never handled. Each of the handlers must see the
// change from the state "" first; all others can begin at any state.
func New(ids ...string) *Ledger {
	l := &Ledger{settled: map[string]string{}, tried: map[string]bool{}, ended: map[string]string{}, open: map[string]bool{}, loose: map[string]bool{}}
	for _, id := range ids {
		l.settled[id] = ""
	}
	return l
}

// Call records that a handler is called for the change between two states. They are equal only
// if the handler was called for a change that was taken back.
func (l *Ledger) Call(id, before, after string) {
	if before == after && !l.open[id] && !l.loose[id] {
		l.problems = append(l.problems, fmt.Sprintf("%s is called at %s without a change", id, after))
	}
	l.Repeat(id, before, after)
}

// Repeat records a call that can be without a change, because the object is resumed, or because
// the parent of the handler is called.
func (l *Ledger) Repeat(id, before, after string) {
	if _, ended := l.ended[id]; ended {
		l.problems = append(l.problems, id+" is called again after it has ended")
	}
	l.tried[id] = true
	settled, known := l.settled[id]
	switch {
	case !known:
		l.settled[id] = before
	case settled != before:
		l.problems = append(l.problems, fmt.Sprintf("%s is called for the change from %s to %s, but has handled everything up to %s", id, before, after, settled))
		l.settled[id] = before
	}
}

// End records that a handler has ended at a state. Nothing is recorded yet.
func (l *Ledger) End(id, after string) { l.ended[id] = after }

// Record is called when the operator has stored the attempts.
func (l *Ledger) Record() {
	maps.Copy(l.open, l.tried)
	for id, state := range l.ended {
		l.settled[id] = state
		delete(l.open, id)
		delete(l.loose, id)
	}
	l.Forget()
}

// RecordEnds records that the operator has stored where some of the handlers have ended.
func (l *Ledger) RecordEnds(isStored func(id string) bool) {
	for id, state := range l.ended {
		if !isStored(id) {
			continue
		}
		l.settled[id] = state
		delete(l.open, id)
		delete(l.loose, id)
		delete(l.tried, id)
		delete(l.ended, id)
	}
}

// Open records that the attempts of handlers that have not ended may be stored.
func (l *Ledger) Open() { maps.Copy(l.open, l.tried) }

// Forget records that the operator has died: handlers that have ended may be called again.
func (l *Ledger) Forget() {
	clear(l.tried)
	clear(l.ended)
}

// Loosen allows handlers to continue from any state, because something else has handled or
// excluded the object.
func (l *Ledger) Loosen(ids ...string) {
	for _, id := range ids {
		delete(l.settled, id)
		delete(l.tried, id)
		delete(l.ended, id)
		delete(l.open, id)
		l.loose[id] = true
	}
}

// Settle records that something else has handled everything up to a state.
func (l *Ledger) Settle(id, state string) {
	l.Loosen(id)
	l.settled[id] = state
}

// Finish checks that handlers have handled everything up to the last state, and that they
// have ended.
func (l *Ledger) Finish(last map[string]string) {
	for _, id := range slices.Sorted(maps.Keys(last)) {
		if l.open[id] {
			l.problems = append(l.problems, id+" was called and has not ended")
		}
		if settled, known := l.settled[id]; known && settled != last[id] {
			l.problems = append(l.problems, fmt.Sprintf("%s has handled everything up to %s only, not up to %s", id, settled, last[id]))
		}
	}
}

// Problems returns what was wrong.
func (l *Ledger) Problems() []string { return l.problems }
