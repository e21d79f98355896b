package configurations

import (
	"context"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// The pauses after writes that have failed.
const firstPause, lastPause = time.Second, time.Minute

// Lead writes the configurations until the context is done: now, after every
// change, and from time to time. Changes that come while it writes become one write.
func (m *Manager) Lead(ctx context.Context) {
	m.begin()
	m.lead(true)
	defer m.lead(false)
	failure, failed := firstPause, ""
	for ctx.Err() == nil {
		err := m.write(ctx)
		switch {
		case err == nil:
			failure, failed = firstPause, ""
			m.pause(ctx, m.patience(), m.wake)
		case ctx.Err() != nil:
		default:
			if failed != err.Error() { // once, not a stream
				m.logger.Error(err, "The cluster does not know yet where the admission handlers are; it will be tried again.")
			}
			failed = err.Error()
			m.pause(ctx, failure, nil)
			failure = min(2*failure, lastPause)
		}
	}
}

// begin forgets what was written by a former lead: since then it was another
// replica's turn.
func (m *Manager) begin() {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.rivals = rivalry{}
}

// patience is how long to wait for the next look.
func (m *Manager) patience() time.Duration {
	m.writing.Lock()
	defer m.writing.Unlock()
	return m.rivals.patience()
}

func (m *Manager) lead(leading bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leading = leading
	m.tell()
}

// tell wakes those who wait. The lock is held.
func (m *Manager) tell() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// write does what is wanted now.
func (m *Manager) write(ctx context.Context) error {
	hooks, config, wanted := m.now()
	if config == nil {
		return nil // the server is not ready, or the cluster was not looked at
	}
	if err := m.bring(ctx, hooks, *config); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written = wanted
	m.tell()
	return nil
}

// now is what is wanted. What was told until now need not wake anybody any more.
func (m *Manager) now() ([]Hook, *admissionregistrationv1.WebhookClientConfig, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.wake:
	default:
	}
	if !m.known {
		return nil, nil, m.wanted
	}
	return m.hooks, m.config, m.wanted
}

func (m *Manager) bring(ctx context.Context, hooks []Hook, config admissionregistrationv1.WebhookClientConfig) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	switch {
	case m.cleaned:
		return nil
	case m.options.Name == "":
		return m.print(hooks, config)
	}
	return m.apply(ctx, hooks, config)
}
