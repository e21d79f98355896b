package ring

import (
	"fmt"
	"time"

	"github.com/kopf-go/kopf/pkg/shards"
)

// State is what this replica knows of the ring.
type State struct {
	// Identity names this replica.
	Identity string
	// Gate is the holder of the gate: the division, or a leader. It is empty if nothing holds it.
	Gate string
	// Leader is the replica that holds the gate by leader election, or empty. This one waits until it stops.
	Leader string
	// Joined reports whether this replica takes part.
	Joined bool
	// Leaving reports whether it gives up all shards, because it stops.
	Leaving bool
	// Members are the identities of the replicas that want shards, sorted.
	Members []string
	// Shards are the shards, by their number.
	Shards []ShardState
	// Assigned are the shards that this replica should hold.
	Assigned shards.Set
	// Taken, Given and Lost are how many shards this replica has got, given up, and lost since its start.
	Taken, Given, Lost uint64
	// Writes is how many writes of Leases this replica has tried since its start.
	Writes uint64
}

// ShardState is the state of one shard.
type ShardState struct {
	// Holder is the identity of the replica that holds the Lease, or empty.
	Holder string
	// Free is since when no replica holds the Lease, as far as this one knows, or zero. While a leader handles all objects, it
	// is zero.
	Free time.Time
	// Handled reports whether this replica has not finished handling the shard, whether or not it holds the Lease.
	Handled bool
	// Lost reports whether the Lease was lost meanwhile.
	Lost bool
	// Draining is since when this replica gives up the shard, or zero.
	Draining time.Time
}

// State returns the current state.
func (r *Ring) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	s := State{Identity: r.config.Identity, Joined: r.joined, Leaving: r.leaving, Taken: r.taken, Given: r.given, Lost: r.lost, Writes: r.writes}
	if gate := r.view.leases[r.names.gate]; !gate.isFree(now) {
		s.Gate = gate.holder()
		if _, isDivision := shards.Parse(s.Gate); !isDivision {
			s.Leader = s.Gate
		}
	}
	s.Members, _ = r.liveMembers(now)
	for shard, name := range r.names.shards {
		var state ShardState
		switch known := r.view.claim(name); {
		case !known.isFree(now):
			state.Holder = known.holder()
		case s.Leader == "":
			state.Free = r.view.freeSince(name)
		}
		if r.joined && !r.left && r.assignment.holders != nil && r.assignment.holders[shard] == r.config.Identity {
			s.Assigned = s.Assigned.With(shard)
		}
		if t := r.tenures[shard]; t != nil && t.phase == holding {
			state.Handled = true
			state.Lost = t.isLost()
			state.Draining = t.draining
		}
		s.Shards = append(s.Shards, state)
	}
	return s
}

// settling is how long a change is not logged, because others belong to it.
const settling = time.Second

// patience is how long this replica waits for shards without a word. Moves between replicas that live take less.
const patience = 5 * time.Second

// news is what the log does not say yet.
type news struct {
	told  shards.Set // what is handled, as the log says
	lost  shards.Set
	since time.Time // when the first change was that the log does not say, or zero

	waits     time.Time // since when this replica waits for shards that others hold, or zero
	waitsTold bool
}

// waiting returns what must be logged about the shards that this replica waits for, and when there will be more, or zero.
func (n *news) waiting(awaited shards.Set, now time.Time) (line string, next time.Time) {
	if awaited.Len() == 0 {
		n.waits, n.waitsTold = time.Time{}, false
		return "", time.Time{}
	}
	if n.waits.IsZero() {
		n.waits = now
	}
	if n.waitsTold {
		return "", time.Time{}
	}
	if next := n.waits.Add(patience); now.Before(next) {
		return "", next
	}
	n.waitsTold = true
	return fmt.Sprintf("This replica waits for %s. Other replicas hold the Leases until they have given them up, or, if they have died, until the Leases expire.", inWords(awaited)), time.Time{}
}

// lines returns what must be logged now, and when there will be more, or zero.
func (n *news) lines(held shards.Set, now time.Time, leaving bool) (lines []string, next time.Time) {
	// Shards that are lost and come back are told again, although they are the same.
	changed := (!held.Equal(n.told) || n.lost.Len() > 0) && !leaving
	if !changed && n.lost.Len() == 0 {
		n.since = time.Time{}
		return nil, time.Time{}
	}
	if n.since.IsZero() {
		n.since = now
	}
	if next := n.since.Add(settling); now.Before(next) {
		return nil, next
	}
	if n.lost.Len() > 0 {
		lines = append(lines, fmt.Sprintf("This replica has lost %s, and cancels the handlers of all objects there.", inWords(n.lost)))
	}
	switch {
	case changed && held.Len() == 0:
		lines = append(lines, "This replica handles no shards.")
	case changed:
		lines = append(lines, fmt.Sprintf("This replica handles %s.", inWords(held)))
	}
	n.told, n.lost, n.since = held, shards.Set{}, time.Time{}
	return lines, time.Time{}
}

// inWords names the shards of a set that is not empty.
func inWords(set shards.Set) string {
	if set.Len() == 1 {
		return "the shard " + set.String()
	}
	return "the shards " + set.String()
}
