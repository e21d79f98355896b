package sharing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/stop"
)

const (
	// dawdling is how long a busy machine can take from the decision to call a handler to its first line.
	dawdling = 500 * time.Millisecond
	// handover is how long a shard can have no holder, besides the time until the Lease of a dead one has expired.
	handover = 5 * time.Second
)

// judge checks what the replicas have done.
func (s *story) judge() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := slices.Clone(s.journal.all(s.t))
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	s.judgeHolders()
	s.judgeCalls(lines)
	s.judgeOverlaps(lines, begins, ends)
	s.judgeOverlaps(lines, starts, leaves)
	s.judgeSuccesses(lines)
	for uid, entries := range s.entries {
		for i, entry := range entries {
			if slices.Contains(entries[:i], entry) || i > 0 && strings.HasPrefix(entry, "creation") {
				s.t.Errorf("%s: a success is recorded twice: %q", uid, entries)
			}
		}
	}
	for name, times := range s.children {
		if times > 1 {
			s.t.Errorf("the child %s was created %d times", name, times)
		}
	}
}

// frozen returns the freeze of a replica that ended shortly before, or not before a time.
func (s *story) frozen(name string, at time.Time) *freeze {
	for _, f := range s.freezes {
		if f.name == name && !at.Before(f.from) && at.Before(f.until.Add(dawdling)) {
			return &f
		}
	}
	return nil
}

// judgeHolders checks how long shards had no holder.
func (s *story) judgeHolders() {
	var longestDead, longestReleased time.Duration
	lost := 0
	for shard := range number {
		all := s.leases.named(shard)
		for i := 1; i < len(all); i++ {
			last, next := all[i-1], all[i]
			since := last.until
			dead := !last.released
			if dead {
				since = last.renewed
				lost++
			}
			if died, ok := s.deaths[last.by]; ok && dead {
				since = died
			}
			for _, f := range s.freezes {
				if f.name == last.by && !last.renewed.After(f.until) && last.until.After(f.from) {
					since, dead = f.from, true
				}
			}
			gap := next.seen.Sub(since)
			if dead {
				longestDead = max(longestDead, gap)
			} else {
				longestReleased = max(longestReleased, gap)
			}
			limit := handover + leaseDuration*time.Duration(max(1, s.countFailures(since, next.seen)))
			if stalled := s.leases.stalled(since, next.seen); gap > limit+2*stalled {
				s.t.Errorf("shard %d had no holder for %s, after %s, and the API server was silent for %s: %+v", shard, gap, last.by, stalled, all)
			}
		}
	}
	s.note("shards had no holder for at most %s after a death, and %s after a release; they were lost %d times", longestDead, longestReleased, lost)
}

// countFailures returns how many replicas died or were frozen between two times. A shard can be assigned to one of them as long
// as the others do not know that.
func (s *story) countFailures(from, until time.Time) (failures int) {
	isWithin := func(at time.Time) bool { return !at.Before(from) && at.Before(until) }
	for _, died := range s.deaths {
		if isWithin(died) {
			failures++
		}
	}
	for _, f := range s.freezes {
		if isWithin(f.from) {
			failures++
		}
	}
	return failures
}

// judgeCalls checks that no call begins for an object of a shard that the replica does not hold.
func (s *story) judgeCalls(lines []line) {
	byShard := make([][]tenure, number)
	for shard := range byShard {
		byShard[shard] = s.leases.named(shard)
	}
	calls, afterFreeze := 0, map[string]int{}
	var late, lateAfterFreeze time.Duration
	for _, l := range lines {
		if l.what != begins && l.what != starts && l.what != ticks && l.what != applies {
			continue
		}
		calls++
		shard := division.Of(s.namespace, l.uid)
		could := func(at time.Time) bool {
			return slices.ContainsFunc(byShard[shard], func(t tenure) bool { return t.by == l.by && t.couldWork(at) })
		}
		if could(l.at) {
			continue
		}
		if f := s.frozen(l.by, l.at); f != nil {
			afterFreeze[l.what]++
			lateAfterFreeze = max(lateAfterFreeze, l.at.Sub(f.until))
			continue
		}
		excess := dawdling + 1
		for _, t := range byShard[shard] {
			if t.by == l.by && t.from.Before(l.at) {
				end := t.renewed.Add(leaseDuration)
				if t.released && t.until.Before(end) {
					end = t.until
				}
				excess = min(excess, l.at.Sub(end))
			}
		}
		late = max(late, excess)
		if excess > dawdling {
			s.t.Errorf("%s: %s %s %s of shard %d, which it does not hold: %+v", l.at.Format(time.StampMicro), l.by, l.what, l.uid, shard, byShard[shard])
		}
	}
	s.note("%d calls; after a freeze without the shard: %v, for at most %s; the others at most %s late", calls, afterFreeze, lateAfterFreeze, late)
}

// span is the time of a call.
type span struct {
	line
	until time.Time
}

// judgeOverlaps checks that an object has one call at a time. A replica that was frozen does not know that another one has begun.
func (s *story) judgeOverlaps(lines []line, begin, end string) {
	spans := map[types.UID][]span{}
	overlaps := 0
	for _, l := range lines {
		all := spans[l.uid]
		switch l.what {
		case begin:
			for _, other := range all {
				if !other.until.IsZero() {
					continue
				}
				died, dead := s.deaths[other.by]
				switch {
				case dead && died.Before(l.at.Add(dawdling)):
				case s.isFrozenBetween(other.by, other.at, l.at), s.isFrozenBetween(l.by, l.at.Add(-leaseDuration), l.at):
					overlaps++
				default:
					s.t.Errorf("%s: %s %s %s %s, during %q by %s since %s", l.at.Format(time.StampMicro), l.by, l.what, l.uid, l.detail,
						other.what+" "+other.detail, other.by, other.at.Format(time.StampMicro))
				}
			}
			spans[l.uid] = append(all, span{line: l})
		case end:
			for i := range all {
				if all[i].by == l.by && all[i].detail == l.detail && all[i].until.IsZero() || all[i].by == l.by && begin == starts && all[i].until.IsZero() {
					all[i].until = l.at
				}
			}
		}
	}
	s.note("%d times, %s overlaps with a call of a replica that was frozen", overlaps, begin)
}

// isFrozenBetween reports whether a replica was frozen at some moment between two times.
func (s *story) isFrozenBetween(name string, from, until time.Time) bool {
	return slices.ContainsFunc(s.freezes, func(f freeze) bool {
		return f.name == name && f.from.Before(until) && f.until.Add(dawdling).After(from)
	})
}

// judgeSuccesses checks that each success is recorded once: a success that could be recorded is the last one.
func (s *story) judgeSuccesses(lines []line) {
	last := map[change]line{}
	repeated, lost := 0, 0
	deleted := map[types.UID]bool{}
	var latest time.Duration
	changed := map[types.UID]time.Time{}
	for _, one := range s.gone {
		changed[one.GetUID()] = one.changed
	}
	for _, l := range lines {
		if l.what != succeeds {
			continue
		}
		c := change{l.uid, l.detail}
		if before, ok := last[c]; ok {
			died, dead := s.deaths[before.by]
			switch {
			case dead && died.Sub(before.at) < leaseDuration, s.isFrozenBetween(before.by, before.at.Add(-leaseDuration), l.at):
				repeated++ // it was not recorded
			case s.isLost(lines, before, l.at):
				lost++
			case s.isFrozenBetween(l.by, l.at.Add(-dawdling), l.at): // in the middle of its call
				repeated++
				continue
			default:
				s.t.Errorf("%s: %s succeeds with the %s of %s, and %s has succeeded at %s\n%s", l.at.Format(time.StampMicro), l.by, l.detail, l.uid,
					before.by, before.at.Format(time.StampMicro), s.historyOf(l.uid, lines))
			}
		}
		last[c] = l
		if strings.HasPrefix(l.detail, "deletion") {
			deleted[l.uid] = true
			latest = max(latest, l.at.Sub(changed[l.uid]))
		}
	}
	for _, one := range s.gone {
		if one.mourned && !deleted[one.GetUID()] {
			s.t.Errorf("%s was deleted without its handler", one.GetName())
		}
	}
	successes := map[string]int{}
	var slowest line
	var delay time.Duration // until the slowest success is recorded
	for c, l := range last {
		kind, _, _ := strings.Cut(c.what, " ")
		successes[kind]++
		if at := s.recorded[c]; at.Sub(l.at) > delay && !s.isFrozenBetween(l.by, l.at, at) {
			slowest, delay = l, at.Sub(l.at)
		}
	}
	s.note("successes of replicas that were not frozen were recorded at most %s later: that of %s with the %s of %s at %s", delay,
		slowest.by, slowest.detail, slowest.uid, slowest.at.Format(time.StampMicro))
	s.note("successes: %v; %d were repeated because a replica was killed or frozen before it recorded them, and %d because it was too slow to keep its shard; the latest deletion was handled after %s",
		successes, repeated, lost, latest)
}

// isLost reports whether a replica has lost the shard of an object between the end of a call and another time. Its Lease need not show
// that: the answer to a renewal can be late.
func (s *story) isLost(lines []line, did line, until time.Time) bool {
	shard := division.Of(s.namespace, did.uid)
	return slices.ContainsFunc(lines, func(l line) bool {
		return l.by == did.by && !l.at.Before(did.at) && !l.at.After(until) && division.Of(s.namespace, l.uid) == shard &&
			l.what == leaves && strings.Contains(l.detail, stop.LeadershipLost.String())
	})
}

// historyOf describes what the replicas did with an object, and who had its shard.
func (s *story) historyOf(uid types.UID, lines []line) string {
	var history strings.Builder
	for _, l := range lines {
		if l.uid == uid && l.what != ticks {
			fmt.Fprintf(&history, "%s: %s %s %s\n", l.at.Format(time.StampMicro), l.by, l.what, l.detail)
		}
	}
	shard := division.Of(s.namespace, uid)
	for _, t := range s.leases.named(shard) {
		fmt.Fprintf(&history, "shard %d: %s from %s, renewed at %s, until %s, released: %t\n", shard, t.by,
			t.from.Format(time.StampMicro), t.renewed.Format(time.StampMicro), t.until.Format(time.StampMicro), t.released)
	}
	for name, died := range s.deaths {
		fmt.Fprintf(&history, "%s was killed at %s\n", name, died.Format(time.StampMicro))
	}
	fmt.Fprintf(&history, "recorded: %q", s.entries[uid])
	return history.String()
}
