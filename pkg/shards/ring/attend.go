package ring

import (
	"context"
	"fmt"
	"time"

	"github.com/kopf-go/kopf/pkg/shards"
)

// attendance is what attend remembers from one round to the next.
type attendance struct {
	memberDue, gateDue time.Duration // after the last renewal
	retry              time.Time     // after a failure
	waiting            bool          // for replicas that do not belong to the ring
	first              string        // the version in which another division was first seen at the gate
	removed            bool          // the Lease of this replica is deleted, because it leaves
}

// attend makes the others know this replica, and holds the gate, until the context is done. It returns an error if the
// replicas that hold the gate use another division.
func (r *Ring) attend(ctx context.Context) error {
	a := attendance{memberDue: r.interval(), gateDue: r.interval()}
	for ctx.Err() == nil {
		wait, err := r.attendOnce(ctx, &a)
		if err != nil {
			return err
		}
		select {
		case <-r.attention:
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	return nil
}

// attendOnce does what is due, and returns how long nothing else is due, unless a Lease changes.
func (r *Ring) attendOnce(ctx context.Context, a *attendance) (wait time.Duration, err error) {
	r.mu.Lock()
	gate := r.view.leases[r.names.gate]
	member := r.view.leases[r.names.member]
	listed := r.view.listed
	joined := r.joined
	leaving := r.leaving
	r.mu.Unlock()

	now := time.Now()
	if now.Before(a.retry) {
		return a.retry.Sub(now), nil
	}
	failed := func(err error) (time.Duration, error) {
		pause := r.pause()
		if isRaced(err) {
			pause /= 10
		} else {
			r.report("attend", "The leases of this replica cannot be read or written. It takes no shards until that succeeds.", err)
		}
		a.retry = time.Now().Add(pause)
		return pause, nil
	}
	ours := r.config.Division.String()
	switch {
	case leaving && !a.removed:
		if err := r.remove(ctx, r.names.member, nil); err != nil {
			return failed(err)
		}
		a.removed = true
		r.setLeft()
		return 0, nil
	case !listed, leaving && !joined, joined && gate.holder() != ours:
		return r.duration, nil // until something changes
	case joined:
		if !leaving && (member.lease == nil || now.Sub(member.at) >= a.memberDue) {
			if err := r.renew(ctx, r.names.member, member, r.config.Identity); err != nil {
				return failed(err)
			}
			a.memberDue = r.interval()
			return 0, nil
		}
		if now.Sub(gate.at) >= a.gateDue {
			a.gateDue = r.interval()
			if err := r.renew(ctx, r.names.gate, gate, ours); err != nil {
				return failed(err)
			}
			r.report("attend", "", nil)
			return 0, nil
		}
		wait = a.gateDue - now.Sub(gate.at)
		if !leaving {
			wait = min(wait, a.memberDue-now.Sub(member.at))
		}
		return max(wait, 0), nil
	}

	gate, err = r.read(ctx, r.names.gate)
	if err != nil {
		return failed(err)
	}
	if gate.holder() == ours || gate.isFree(time.Now()) {
		err := r.join(ctx, gate, member)
		if err != nil {
			return failed(err)
		}
		a.waiting = false
		a.first = ""
		r.report("attend", "", nil)
		return 0, nil
	}
	return r.pause(), r.waitOutside(a, gate)
}

// join makes this replica a member, and then writes the gate, even if that is held. A replica that has just seen no
// other members, and releases the gate, fails to write it then, or else this one does.
func (r *Ring) join(ctx context.Context, gate, member seen) error {
	if err := r.renew(ctx, r.names.member, member, r.config.Identity); err != nil {
		return err
	}
	if err := r.renew(ctx, r.names.gate, gate, r.config.Division.String()); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.joined = true
	r.wake()
	return nil
}

// renew is put, which reads the Lease if it has another version than the one that was seen.
func (r *Ring) renew(ctx context.Context, name string, known seen, holder string) error {
	err := r.put(ctx, name, known, holder)
	if isRaced(err) {
		if _, err := r.read(ctx, name); err != nil {
			return err
		}
	}
	return err
}

// waitOutside says once why this replica takes no part. It returns an error if replicas with another division are alive: they
// renew the gate.
func (r *Ring) waitOutside(a *attendance, gate seen) error {
	if _, isDivision := shards.Parse(gate.holder()); isDivision {
		if a.first == "" {
			a.first = gate.lease.ResourceVersion
		}
		if a.first == gate.lease.ResourceVersion {
			return nil
		}
		return fmt.Errorf("this replica divides the objects into %s, but other replicas of %q run with %s: stop all replicas, then start them with the new number (settings.Replicas.Shards); no rolling update can change it",
			r.config.Division, r.config.Name, gate.holder())
	}
	a.first = ""
	if !a.waiting {
		a.waiting = true
		r.config.Logger.Info(fmt.Sprintf("This replica waits until the replica %s, which uses leader election, has stopped.", gate.holder()), "lease", r.names.gate)
	}
	return nil
}

// leave begins to give up all shards.
func (r *Ring) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving = true
	r.wake()
}

// setLeft records that the others know that this replica leaves, or cannot be told.
func (r *Ring) setLeft() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
	r.wake()
}

// changed must be called after a change of the view, with the lock.
func (r *Ring) changed() {
	gate := r.view.leases[r.names.gate]
	if gate.holder() == r.config.Division.String() {
		r.gateSeen.set(gate.at)
	}
	r.wake()
}
