package ring

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/shards"
)

// assignment is what shards.Assign says about some members.
type assignment struct {
	members []string
	holders []string // by shard
}

// decide starts, drains, and loses tenures, and has removed what dead replicas have left. It returns how long it need not be called
// unless something changes, and whether this replica holds nothing and has left. The contexts are for requests, and
// for Config.Hold.
func (r *Ring) decide(lasting, handling context.Context) (wait time.Duration, done bool) {
	lines, wait, done := r.decideLocked(lasting, handling)
	for _, line := range lines {
		r.config.Logger.Info(line)
	}
	return wait, done
}

func (r *Ring) decideLocked(lasting, handling context.Context) (lines []string, wait time.Duration, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	next := now.Add(r.duration)
	until := func(at time.Time) { next = earlier(next, at) }

	if r.joined {
		gate := r.view.leases[r.names.gate]
		deadline := gate.at.Add(r.config.RenewDeadline)
		if gate.holder() != r.config.Division.String() || !now.Before(deadline) {
			r.joined = false
			r.wake()
		} else {
			until(deadline)
		}
	}
	members, expiry := r.liveMembers(now)
	until(expiry)
	if !slices.Equal(members, r.assignment.members) || r.assignment.holders == nil {
		r.assignment = assignment{members, shards.Assign(r.config.Division.Number, members)}
	}

	var drained, awaited shards.Set
	for shard, name := range r.names.shards {
		mine := r.joined && !r.left && r.assignment.holders[shard] == r.config.Identity
		known, claim := r.view.leases[name], r.view.claim(name)
		held := known.holder() == r.config.Identity
		available := claim.holder() == r.config.Identity || claim.isFree(now)
		t := r.tenures[shard]
		switch {
		case t == nil && mine && available:
			r.start(lasting, handling, shard)
		case t == nil && mine:
			awaited = awaited.With(shard)
			until(claim.expires())
		case t == nil && held: // an answer was lost, or the Lease
			until(r.aside(name, now, func() error { return r.put(lasting, name, known, "") }))
		case t == nil && known.holder() != "" && r.joined:
			// The replica that should take the shard may have started later, and wait longer for its dead holder.
			if at := known.expires().Add(r.config.RetryPeriod); now.Before(at) {
				until(at)
			} else {
				until(r.aside(name, now, func() error { return r.put(lasting, name, known, "") }))
			}
		case t == nil:
		case t.phase == acquiring && (!mine || !available):
			t.abort()
		case t.phase == holding && (!r.joined || !t.owns(known.lease) || t.expired.Load()):
			t.lose()
		case t.phase == holding && !mine && t.draining.IsZero():
			t.drain(now)
			drained = drained.With(shard)
		}
	}
	if r.joined {
		until(r.removeDead(lasting, now))
	}
	lines, at := r.news.lines(r.held(), now, r.leaving)
	until(at)
	waiting, at := r.news.waiting(awaited, now)
	until(at)
	if waiting != "" {
		lines = append(lines, waiting)
	}
	switch {
	case drained.Len() > 0 && r.left:
		lines = append(lines, fmt.Sprintf("This replica gives up %s, because it stops.", inWords(drained)))
	case drained.Len() > 0:
		lines = append(lines, fmt.Sprintf("This replica gives up %s, which other replicas will handle.", inWords(drained)))
	}
	return lines, max(next.Sub(now), 0), r.leaving && r.left && len(r.tenures) == 0
}

// earlier returns the earlier one of two times. A zero time does not count.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// liveMembers returns the replicas that want shards, sorted, and when the next of their Leases expires. This one does not depend on
// its own Lease: it keeps what it holds if that is deleted by hand.
func (r *Ring) liveMembers(now time.Time) (members []string, expiry time.Time) {
	if r.joined && !r.left {
		members = append(members, r.config.Identity)
	}
	for name, known := range r.view.leases {
		if r.names.isOther(name) && !known.isFree(now) {
			members = append(members, known.holder())
			expiry = earlier(expiry, known.expires())
		}
	}
	slices.Sort(members)
	return members, expiry
}

// removeDead removes the Leases of replicas that have died, and of shards that exist no longer. It returns when the next one can
// be removed.
func (r *Ring) removeDead(ctx context.Context, now time.Time) (next time.Time) {
	for name, known := range r.view.leases {
		if r.names.isPermanent(name) || name == r.names.member {
			continue
		}
		if !known.isFree(now) {
			next = earlier(next, known.expires())
			continue
		}
		only := &metav1.Preconditions{UID: &known.lease.UID, ResourceVersion: &known.lease.ResourceVersion}
		next = earlier(next, r.aside(name, now, func() error { return r.remove(ctx, name, only) }))
	}
	return next
}

// aside makes a request about a Lease in another goroutine, unless one was made shortly before. It returns when the
// next one can be made.
func (r *Ring) aside(name string, now time.Time, request func() error) (next time.Time) {
	if next := r.notBefore[name]; now.Before(next) {
		return next
	}
	maps.DeleteFunc(r.notBefore, func(_ string, at time.Time) bool { return now.After(at) })
	r.notBefore[name] = now.Add(r.pause())
	r.requests.Go(func() { _ = request() }) // it is repeated, unless another replica was faster
	return r.notBefore[name]
}

// held returns the shards that this replica handles and keeps.
func (r *Ring) held() (held shards.Set) {
	for shard, t := range r.tenures {
		if t.phase == holding && t.draining.IsZero() && !t.isLost() {
			held = held.With(shard)
		}
	}
	return held
}

// finish releases what is still held: Leases that could not be released before, and the gate, if no other replica needs it. It
// asks the API server: of several replicas that leave together, the last one sees that it is the last one.
func (r *Ring) finish(ctx context.Context) {
	listing, cancel := context.WithTimeout(ctx, r.timeout())
	defer cancel()
	var options metav1.ListOptions
	r.names.narrow(&options)
	list, err := r.client.List(listing, options)
	if err != nil {
		return // everything expires
	}
	r.mu.Lock()
	joined := r.joined
	now := time.Now()
	var all []seen
	for i := range list.Items {
		lease := &list.Items[i]
		r.view.observe(lease, now)
		one := seen{lease, now}
		if known := r.view.leases[lease.Name]; known.lease.ResourceVersion == lease.ResourceVersion {
			one.at = known.at
		}
		all = append(all, one)
	}
	r.mu.Unlock()

	var gate seen
	needed := false
	for _, one := range all {
		name := one.lease.Name
		switch {
		case name == r.names.gate:
			gate = one
		case name == r.names.member:
			_ = r.remove(ctx, name, nil) // else it expires
		case one.holder() == r.config.Identity:
			needed = r.put(ctx, name, one, "") != nil || needed
		case !one.isFree(now):
			needed = true
		}
	}
	// A replica that has joined since the list has written the gate, which is not released then.
	if joined && !needed && gate.holder() == r.config.Division.String() {
		_ = r.put(ctx, r.names.gate, gate, "")
	}
}
