package peering

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kopf-go/kopf/pkg/settings"
)

// mandatoryPollInterval is how often a resource that is needed and missing is looked
// for. One that is not needed is looked for once a lifetime.
const mandatoryPollInterval = 5 * time.Second

// watchObject finds the object and watches it, again and again until the context is
// done. It runs beside everything else of the member, and talks to it by channels.
func (m *member) watchObject(ctx context.Context) {
	backoff := watchBackoff()
	for ctx.Err() == nil {
		found, err := m.find(ctx, m.target)
		if err == nil {
			*backoff = *watchBackoff()
			send(ctx, m.apis, found)
			err = found.watch(ctx, func(s peeringState) { send(ctx, m.states, s) })
		}
		if err != nil {
			send(ctx, m.states, peeringState{err: err})
		}
		select {
		case <-time.After(m.retryDelay(err, backoff)):
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

// retryDelay is how long to wait after an error. What is missing or forbidden will
// stay so for a while.
func (m *member) retryDelay(err error, backoff *wait.Backoff) time.Duration {
	switch {
	case !IsNotFound(err) && !apierrors.IsForbidden(err):
		return backoff.Step()
	case m.settings.Mandatory:
		return min(mandatoryPollInterval, m.settings.Lifetime)
	default:
		return m.settings.Lifetime
	}
}

// handleError is when the object could not be looked at. Without a permission, it
// is as if it was not there. After anything else what was decided holds.
func (m *member) handleError(err error) {
	switch {
	case errors.Is(err, context.Canceled):
	case IsNotFound(err), apierrors.IsForbidden(err):
		m.handleMissing(err)
	default:
		m.reportOnce(topicWatch, err, "The peering cannot be looked at; it will be tried again.", "paused", m.decision.Paused, "decided", m.decided)
	}
}

// refresh looks at the object afresh: a peer that pauses us seems to be dead. If it
// cannot be read, it is we who are cut off, and the peer may well be active.
func (m *member) refresh(ctx context.Context) {
	s, err := m.api.read(ctx)
	switch {
	case err == nil:
		m.handleState(ctx, s)
	case IsNotFound(err):
		m.handleState(ctx, peeringState{})
	default:
		m.reportOnce(topicExpiry, err, "The peer is silent, but the peering cannot be read: still paused.", "peers", m.decision.Peers)
		m.expiry.set(time.Now().Add(wait.Jitter(writeRetryDelay, 1)))
	}
}

// handleMissing is when there is nobody to talk to: the operator goes on alone, or is
// paused if it must not.
func (m *member) handleMissing(err error) {
	m.renewal.cancel()
	m.expiry.cancel()
	m.clearReport(topicWatch)
	m.clearReport(topicExpiry)
	m.reportMissing(err)
	m.objectExists, m.lastRenewal = false, time.Time{}
	m.applyDecision(decideAlone(m.settings))
}

// decideAlone is the decision where there is no peering object.
func decideAlone(s settings.Peering) Decision {
	if s.Mandatory {
		return Decision{Paused: true, Reason: ReasonObjectMissing}
	}
	return Decision{}
}
