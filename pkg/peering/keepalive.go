package peering

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// How a write that has failed is repeated.
const (
	writeRetryDelay  = 2 * time.Second
	removeRetryDelay = 200 * time.Millisecond
	removeTimeout    = 3 * time.Second
)

// renewalMargin is how long before the end of the lifetime a sign of life is given:
// enough for some attempts, and not for all peers at once. It is 5 to 10 seconds
// of a minute, and more than that of a short life: a slow API server must not
// cost it.
func (m *member) renewalMargin() time.Duration {
	shortest := max(time.Millisecond, m.settings.Lifetime/12, min(time.Second, m.settings.Lifetime/3))
	return shortest + rand.N(shortest)
}

// keepAlive is the regular sign of life. Its answer is a fresh look at the others,
// so that a watch which is stuck without an error does no harm for long.
func (m *member) keepAlive(ctx context.Context) {
	if answer, ok := m.renewEntry(ctx); ok {
		m.handleState(ctx, answer)
	}
}

// renewEntry writes our own entry, and sees to the next time.
func (m *member) renewEntry(ctx context.Context) (peeringState, bool) {
	m.mayHaveEntry, m.lastRenewal = true, time.Now()
	record := Record{Priority: m.settings.Priority, LastSeen: m.lastRenewal, Lifetime: m.settings.Lifetime, Lease: m.lease}
	answer, err := m.api.patch(ctx, "", map[string]any{m.identity: record.encode()})
	switch {
	case err == nil:
		m.clearReport(topicWrite)
		m.renewal.set(m.lastRenewal.Add(m.settings.Lifetime - m.renewalMargin()))
		if !m.settings.Stealth {
			m.logger.V(1).Info("The other operators know that this one is alive.")
		}
		return answer, true
	case ctx.Err() != nil:
	case IsNotFound(err): // the watch will show it
		m.renewal.set(m.lastRenewal.Add(m.renewalMargin()))
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		m.reportOnce(topicWrite, err, "The other operators cannot know of this one: the peering object must be writable for it (verb patch).")
		m.renewal.set(m.lastRenewal.Add(m.settings.Lifetime - m.renewalMargin()))
	default:
		m.reportOnce(topicWrite, err, "The other operators do not know that this one is alive; it will be tried again.")
		m.renewal.set(time.Now().Add(wait.Jitter(writeRetryDelay, 1)))
	}
	return peeringState{}, false
}

// renewSoon gives a sign of life because there is none in the object. Another
// operator whose clock is far ahead could remove our entry each time, and a schema
// can drop it, hence not at once if it was just written.
func (m *member) renewSoon() {
	m.renewal.setEarlier(m.lastRenewal.Add(m.renewalMargin()))
}

// prune removes the entries of the dead. If the object has changed since, nobody
// is removed: one of them may have come back.
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

// removeEntry removes our own entry, so that the others need not wait for its end.
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
		m.logger.Error(failure, "The other operators will take this one for alive until its entry expires.", "lifetime", m.settings.Lifetime.String())
	}
}
