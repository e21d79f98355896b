package configurations

import (
	"context"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-go/kopf/internal/conversion"
)

// The delays before failed writes are retried.
const minRetryDelay, maxRetryDelay = time.Second, time.Minute

// RunLeader writes the configurations until the context is done: at once, after every
// change, and periodically. Changes during a write are combined into one write.
func (m *Manager) RunLeader(ctx context.Context) {
	m.writer.forgetRivals()
	m.setLeading(true)
	defer m.setLeading(false)
	delay := minRetryDelay
	reported := ""
	for ctx.Err() == nil {
		err := m.reconcile(ctx)
		switch {
		case err == nil:
			delay = minRetryDelay
			reported = ""
			m.waitForChange(ctx, m.writer.untilNextCheck(), m.wake)
		case ctx.Err() != nil:
		default:
			if reported != err.Error() { // once, not a stream
				m.logger.Error(err, "The cluster does not know the address of the admission handlers yet; it is tried again.")
			}
			reported = err.Error()
			m.waitForChange(ctx, delay, nil)
			delay = min(2*delay, maxRetryDelay)
		}
	}
}

func (m *Manager) setLeading(leading bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leading = leading
	m.notifyWaiters()
}

// notifyWaiters wakes all callers of Publish. The caller must hold mu.
func (m *Manager) notifyWaiters() {
	close(m.stateChanged)
	m.stateChanged = make(chan struct{})
}

// reconcile writes the desired state.
func (m *Manager) reconcile(ctx context.Context) error {
	hooks, conversions, config, generation := m.desired()
	if config == nil {
		return nil // the server is not ready, or the resources of the cluster are not known
	}
	if err := m.writer.write(ctx, hooks, conversions, *config); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writtenGeneration = generation
	m.notifyWaiters()
	return nil
}

// desired returns the desired state and its generation. Changes up to it need not wake
// the leader anymore.
func (m *Manager) desired() ([]Hook, []*conversion.Graph, *admissionregistrationv1.WebhookClientConfig, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.wake:
	default:
	}
	if !m.hooksKnown {
		return nil, nil, nil, m.generation
	}
	return m.hooks, m.conversions, m.config, m.generation
}

// waitForChange waits for the given time, or until something changes.
func (m *Manager) waitForChange(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	select {
	case <-time.After(d):
	case <-wake:
	case <-ctx.Done():
	}
}
