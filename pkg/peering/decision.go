package peering

import (
	"maps"
	"slices"
	"time"
)

// Reason is why an operator is paused. It is empty for an active operator.
type Reason string

// The reasons of a pause.
const (
	// ReasonHigherPriority means that an operator of a higher priority is alive.
	ReasonHigherPriority Reason = "higher"
	// ReasonSamePriority means that another operator of the same priority is alive. All
	// of them are paused, until they have distinct priorities.
	ReasonSamePriority Reason = "same"
	// ReasonObjectMissing means that the peering object is mandatory and does not exist.
	ReasonObjectMissing Reason = "absent"
)

// Decision says whether one operator works, according to the entries of a peering.
type Decision struct {
	Paused bool
	Reason Reason
	// Peers are the operators that pause this one, sorted.
	Peers []string
	// Until is when the first entry of those peers expires, unless it is renewed. Then a
	// new decision is due. It is zero if no peers pause the operator.
	Until time.Time
	// Endless are those of the peers whose entries have no time, and never expire; sorted.
	Endless []string
	// Dead are the operators whose entries have expired, sorted; this operator can be
	// one of them.
	Dead []string
}

// Decide decides by the entries of all operators whether an operator is paused. Peers of
// a higher or the same priority pause it, peers of a lower priority do not. Its own entry
// does not matter. Decide is a pure function: operators with the same clock make
// consistent decisions.
func Decide(records map[string]Record, identity string, priority int, now time.Time) Decision {
	var d Decision
	var higher, same []string
	for _, peer := range slices.Sorted(maps.Keys(records)) {
		record := records[peer]
		switch {
		case record.IsDead(now):
			d.Dead = append(d.Dead, peer)
		case peer == identity:
		case record.Priority > priority:
			higher = append(higher, peer)
		case record.Priority == priority:
			same = append(same, peer)
		}
	}
	switch {
	case len(higher) > 0:
		d.Reason = ReasonHigherPriority
		d.Peers = higher
	case len(same) > 0:
		d.Reason = ReasonSamePriority
		d.Peers = same
	default:
		return d
	}
	d.Paused = true
	for _, peer := range d.Peers {
		if records[peer].LastSeen.IsZero() {
			d.Endless = append(d.Endless, peer)
		}
		if deadline := records[peer].Deadline(now); d.Until.IsZero() || deadline.Before(d.Until) {
			d.Until = deadline
		}
	}
	return d
}

// combine returns the decision by several objects, any of which can pause the operator. The
// result has no expiries: each object has its own.
func combine(decisions []Decision) Decision {
	var d Decision
	for _, next := range decisions {
		switch {
		case !next.Paused || d.Reason == ReasonHigherPriority && next.Reason != d.Reason:
		case d.Reason == next.Reason:
			d.Peers = append(d.Peers, next.Peers...)
			d.Endless = append(d.Endless, next.Endless...)
		default:
			d = Decision{Paused: true, Reason: next.Reason, Peers: slices.Clone(next.Peers), Endless: slices.Clone(next.Endless)}
		}
	}
	d.Peers = sortedSet(d.Peers)
	d.Endless = sortedSet(d.Endless) // an operator can be in both groups
	return d
}

// equal reports whether two decisions are the same for a person.
func (d Decision) equal(other Decision) bool {
	return d.Paused == other.Paused && d.Reason == other.Reason && slices.Equal(d.Peers, other.Peers) && slices.Equal(d.Endless, other.Endless)
}
