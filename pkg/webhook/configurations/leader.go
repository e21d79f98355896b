package configurations

import (
	"context"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// The pauses after writes that have failed.
const minRetryDelay, maxRetryDelay = time.Second, time.Minute

// RunLeader writes the configurations until the context is done: now, after every
// change, and from time to time. Changes that come while it writes become one write.
func (m *Manager) RunLeader(ctx context.Context) {
	m.resetContention()
	m.setLeading(true)
	defer m.setLeading(false)
	failure, failed := minRetryDelay, ""
	for ctx.Err() == nil {
		err := m.reconcile(ctx)
		switch {
		case err == nil:
			failure, failed = minRetryDelay, ""
			m.waitForChange(ctx, m.checkInterval(), m.wake)
		case ctx.Err() != nil:
		default:
			if failed != err.Error() { // once, not a stream
				m.logger.Error(err, "The cluster does not know yet where the admission handlers are; it will be tried again.")
			}
			failed = err.Error()
			m.waitForChange(ctx, failure, nil)
			failure = min(2*failure, maxRetryDelay)
		}
	}
}

// resetContention forgets what was written by a former lead: since then it was another
// replica's turn.
func (m *Manager) resetContention() {
	m.writeMu.Lock()
	defer m.writeMu.Unlock()
	m.contention = contention{}
}

// checkInterval is how long to wait for the next look.
func (m *Manager) checkInterval() time.Duration {
	m.writeMu.Lock()
	defer m.writeMu.Unlock()
	return m.contention.checkInterval()
}

func (m *Manager) setLeading(leading bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leading = leading
	m.notifyWaiters()
}

// notifyWaiters wakes those who wait. The lock is held.
func (m *Manager) notifyWaiters() {
	close(m.stateChanged)
	m.stateChanged = make(chan struct{})
}

// reconcile does what is wanted now.
func (m *Manager) reconcile(ctx context.Context) error {
	hooks, config, wanted := m.desired()
	if config == nil {
		return nil // the server is not ready, or the cluster was not looked at
	}
	if err := m.applyOrPrint(ctx, hooks, *config); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writtenGeneration = wanted
	m.notifyWaiters()
	return nil
}

// desired is what is wanted. What was told until now need not wake anybody any more.
func (m *Manager) desired() ([]Hook, *admissionregistrationv1.WebhookClientConfig, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.wake:
	default:
	}
	if !m.hooksKnown {
		return nil, nil, m.generation
	}
	return m.hooks, m.config, m.generation
}

func (m *Manager) applyOrPrint(ctx context.Context, hooks []Hook, config admissionregistrationv1.WebhookClientConfig) error {
	m.writeMu.Lock()
	defer m.writeMu.Unlock()
	switch {
	case m.cleanedUp:
		return nil
	case m.options.Name == "":
		return m.printManifest(hooks, config)
	}
	return m.apply(ctx, hooks, config)
}
