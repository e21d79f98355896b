package peering

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kopf-go/kopf/pkg/settings"
)

// mandatoryPolling is how often a resource that is needed and missing is looked
// for. One that is not needed is looked for once a lifetime.
const mandatoryPolling = 5 * time.Second

// observe finds the object and watches it, again and again until the context is
// done. It runs beside everything else of the member, and talks to it by channels.
func (m *member) observe(ctx context.Context) {
	backoff := watchBackoff()
	for ctx.Err() == nil {
		found, err := m.locate(ctx, m.target)
		if err == nil {
			*backoff = *watchBackoff()
			send(ctx, m.places, found)
			err = found.watch(ctx, func(s sight) { send(ctx, m.sights, s) })
		}
		if err != nil {
			send(ctx, m.sights, sight{err: err})
		}
		select {
		case <-time.After(m.pause(err, backoff)):
		case <-ctx.Done():
		}
	}
}

func send[T any](ctx context.Context, to chan<- T, what T) {
	select {
	case to <- what:
	case <-ctx.Done():
	}
}

// pause is how long to wait after an error. What is missing or forbidden will
// stay so for a while.
func (m *member) pause(err error, backoff *wait.Backoff) time.Duration {
	switch {
	case !IsNotFound(err) && !apierrors.IsForbidden(err):
		return backoff.Step()
	case m.settings.Mandatory:
		return min(mandatoryPolling, m.settings.Lifetime)
	default:
		return m.settings.Lifetime
	}
}

// troubled is when the object could not be looked at. Without a permission, it
// is as if it was not there. After anything else what was decided holds.
func (m *member) troubled(err error) {
	switch {
	case errors.Is(err, context.Canceled):
	case IsNotFound(err), apierrors.IsForbidden(err):
		m.missing(err)
	default:
		m.say(seeing, err, "The peering cannot be looked at; it will be tried again.", "paused", m.decision.Paused, "decided", m.decided)
	}
}

// reread looks at the object afresh: a peer that pauses us seems to be dead. If it
// cannot be read, it is we who are cut off, and the peer may well be active.
func (m *member) reread(ctx context.Context) {
	s, err := m.place.read(ctx)
	switch {
	case err == nil:
		m.look(ctx, s)
	case IsNotFound(err):
		m.look(ctx, sight{})
	default:
		m.say(checking, err, "The peer is silent, but the peering cannot be read: still paused.", "peers", m.decision.Peers)
		m.expiry.set(time.Now().Add(wait.Jitter(retryPause, 1)))
	}
}

// missing is when there is nobody to talk to: the operator goes on alone, or is
// paused if it must not.
func (m *member) missing(err error) {
	m.renewal.cancel()
	m.expiry.cancel()
	m.recovered(seeing)
	m.recovered(checking)
	m.reportMissing(err)
	m.present, m.renewed = false, time.Time{}
	m.conclude(alone(m.settings))
}

// alone is the decision where there is no peering object.
func alone(s settings.Peering) Decision {
	if s.Mandatory {
		return Decision{Paused: true, Reason: ReasonObjectMissing}
	}
	return Decision{}
}
