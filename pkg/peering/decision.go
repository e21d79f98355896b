package peering

import (
	"maps"
	"slices"
	"time"
)

// Reason is why an operator is paused.
type Reason string

// The reasons. There is no reason to go on.
const (
	// Higher: an operator of a higher priority is alive.
	ReasonHigherPriority Reason = "higher"
	// Same: another operator of the same priority is alive. All of them are
	// paused, until somebody gives them distinct priorities.
	ReasonSamePriority Reason = "same"
	// Absent: the peering object is mandatory, and is not there.
	ReasonObjectMissing Reason = "absent"
)

// Decision is what the entries in a peering object mean for one operator.
type Decision struct {
	Paused bool
	Reason Reason // empty: it is not paused
	// Peers are those that pause it, in order.
	Peers []string
	// Until is when the first of those peers dies, if nothing is heard of it:
	// then the decision is to be taken again. Zero: it is not paused by peers.
	Until time.Time
	// Dead are those whose entries are of no use any more, in order; the
	// operator itself can be among them.
	Dead []string
}

// Decide tells whether an operator is paused, by the entries of all operators. A
// peer of a higher priority pauses it, one of the same priority too, and one of a
// lower priority does not. Its own entry does not matter. It is a pure function:
// all peers that have the same clock come to fitting decisions.
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
		return d.pausedBy(ReasonHigherPriority, higher, records, now)
	case len(same) > 0:
		return d.pausedBy(ReasonSamePriority, same, records, now)
	default:
		return d
	}
}

func (d Decision) pausedBy(because Reason, peers []string, records map[string]Record, now time.Time) Decision {
	d.Paused, d.Reason, d.Peers = true, because, peers
	for _, peer := range peers {
		if deadline := records[peer].Deadline(now); d.Until.IsZero() || deadline.Before(d.Until) {
			d.Until = deadline
		}
	}
	return d
}

// equal tells whether nothing has changed that a person would want to know.
func (d Decision) equal(other Decision) bool {
	return d.Paused == other.Paused && d.Reason == other.Reason && slices.Equal(d.Peers, other.Peers)
}
