package peering

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// mandatoryPollInterval is how often to look for the missing resource of a mandatory object. That
// of an optional object, and one that another API group has, is looked for once per lifetime, and
// when the operator discovers it. An object of an existing resource is watched before it exists.
const mandatoryPollInterval = 5 * time.Second

// watchObject finds the object and watches it, again and again until the context is
// done. It runs concurrently with the rest of the member, to which it sends what it
// finds.
func (m *member) watchObject(ctx context.Context) {
	backoff := watchBackoff()
	for ctx.Err() == nil {
		api, err := m.find(ctx)
		if err == nil {
			*backoff = *watchBackoff()
			send(ctx, m.apis, api)
			err = api.watch(ctx, func(s peeringState) { send(ctx, m.states, s) })
		}
		if err != nil {
			send(ctx, m.states, peeringState{err: err})
		}
		m.waitToRetry(ctx, err, m.retryDelay(err, backoff))
	}
}

// waitToRetry waits after an error, but not longer than until a missing resource appears.
func (m *member) waitToRetry(ctx context.Context, err error, delay time.Duration) {
	var missing *NotFoundError
	if !errors.As(err, &missing) || !missing.NoResource {
		sleep.For(ctx, delay)
		return
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.served:
	case <-ctx.Done():
	}
}

// observeServed ends the wait for a missing resource, if there is one. Another discovery follows soon
// after one that has found something new, so a call just before the wait does no harm.
func (m *member) observeServed(resources []selector.Resource) {
	isWanted := func(r selector.Resource) bool {
		return r.Group == m.group && r.Version == version && r.Plural == m.target.plural()
	}
	if !slices.ContainsFunc(resources, isWanted) {
		return
	}
	select {
	case m.served <- struct{}{}:
	default: // nothing is missing
	}
}

func send[T any](ctx context.Context, to chan<- T, value T) {
	select {
	case to <- value:
	case <-ctx.Done():
	}
}

// retryDelay returns how long to wait after an error. A missing or forbidden object is
// likely to stay so for a while.
func (m *member) retryDelay(err error, backoff *wait.Backoff) time.Duration {
	switch {
	case !IsNotFound(err) && !apierrors.IsForbidden(err):
		return backoff.Step()
	case m.settings.Mandatory && m.isNeeded():
		return min(mandatoryPollInterval, m.settings.Lifetime)
	default:
		return m.settings.Lifetime
	}
}

// refresh reads the object when the entry of a peer that pauses this operator expires. If
// the read fails, this operator may be the one without a connection: the peer may well be
// active.
func (m *member) refresh(ctx context.Context) {
	s, err := m.api.read(ctx)
	switch {
	case err == nil:
		m.handleState(ctx, s)
	case IsNotFound(err):
		m.handleState(ctx, peeringState{})
	default:
		m.reportOnce(topicExpiry, err, "The operator stays paused: its peer is silent, but the peering object cannot be read.", "peers", m.decision.Peers)
		m.expiry.set(time.Now().Add(wait.Jitter(writeRetryDelay, 1)))
	}
}

// handleMissing handles a missing object, in which the operator meets no peers. What it
// means depends on the other API group.
func (m *member) handleMissing(err error) {
	m.renewal.cancel()
	m.expiry.cancel()
	m.reports.Clear(topicWatch)
	m.reports.Clear(topicExpiry)
	m.objectExists = false
	m.lastRenewal = time.Time{}
	m.publish(view{missing: err})
}
