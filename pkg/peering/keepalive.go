package peering

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// How failed writes are repeated.
const (
	writeRetryDelay  = 2 * time.Second
	removeRetryDelay = 200 * time.Millisecond
	removeTimeout    = 3 * time.Second
)

// renewalMargin returns how long before its expiry the entry is renewed: enough for some
// attempts, and random, so that not all peers write at once. It is 5 to 10 seconds of a
// minute, and a larger share of a short lifetime: a slow API server must not let the
// entry expire.
func (m *member) renewalMargin() time.Duration {
	shortest := max(time.Millisecond, m.settings.Lifetime/12, min(time.Second, m.settings.Lifetime/3))
	return shortest + rand.N(shortest)
}

// renewEntry writes the entry of this operator and schedules the next renewal.
func (m *member) renewEntry(ctx context.Context) (peeringState, bool) {
	m.mayHaveEntry = true
	m.lastRenewal = time.Now()
	record := Record{Priority: m.settings.Priority, LastSeen: m.lastRenewal, Lifetime: m.settings.Lifetime, Lease: m.lease}
	state, err := m.api.patch(ctx, "", map[string]any{m.identity: record.encode()})
	switch {
	case err == nil:
		m.reports.Clear(topicWrite)
		m.renewal.set(m.lastRenewal.Add(m.settings.Lifetime - m.renewalMargin()))
		if !m.settings.Stealth {
			m.logger.V(1).Info("The entry in the peering is renewed.")
		}
		return state, true
	case ctx.Err() != nil:
	case IsNotFound(err): // the watch will report it
		m.renewal.set(m.lastRenewal.Add(m.renewalMargin()))
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		m.reportOnce(topicWrite, err, "Other operators cannot see this one: grant it the verb patch of the peering object.")
		m.renewal.set(m.lastRenewal.Add(m.settings.Lifetime - m.renewalMargin()))
	default:
		m.reportOnce(topicWrite, err, "The entry in the peering cannot be renewed; this is retried.")
		m.renewal.set(time.Now().Add(wait.Jitter(writeRetryDelay, 1)))
	}
	return peeringState{}, false
}

// prune removes the entries of dead operators, unless the object has changed since: one
// of them may have come back.
func (m *member) prune(ctx context.Context, s peeringState, dead []string) {
	entries := map[string]any{}
	for _, peer := range dead {
		if peer != m.identity {
			entries[peer] = nil
		}
	}
	if len(entries) == 0 {
		return
	}
	if _, err := m.api.patch(ctx, s.version, entries); err != nil {
		m.logger.V(1).Info("The entries of dead operators are not removed yet.", "peers", dead, "reason", err.Error())
	}
}

// removeEntry removes the entry of this operator, so that its peers need not wait until
// it expires.
func (m *member) removeEntry(ctx context.Context) {
	if !m.mayHaveEntry {
		return
	}
	ctx = context.WithoutCancel(ctx)
	var failure error
	err := wait.PollUntilContextTimeout(ctx, removeRetryDelay, removeTimeout, true, func(ctx context.Context) (bool, error) {
		_, failure = m.api.patch(ctx, "", map[string]any{m.identity: nil})
		return failure == nil || IsNotFound(failure) || apierrors.IsForbidden(failure), nil
	})
	if err != nil {
		m.logger.Error(failure, "The entry in the peering cannot be removed; other operators consider this one alive until it expires.", "lifetime", m.settings.Lifetime.String())
	}
}
