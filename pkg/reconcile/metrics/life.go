package metrics

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Around makes the metrics live as long as the parts of the operator that it is
// called for: from when the first one of them is run until the last one of those
// that were run has returned.
func (m *Metrics) Around(run func(context.Context) error) func(context.Context) error {
	if m == nil {
		return run
	}
	return func(ctx context.Context) error {
		if err := m.Open(); err != nil {
			return err
		}
		defer m.Close()
		return run(ctx)
	}
}

// Open puts the series of the operator into the registry, for as many as have
// called it. If another operator that runs has the name already, this one is called
// after it: "kopf-2".
func (m *Metrics) Open() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users == 0 {
		if err := m.claim(); err != nil {
			return fmt.Errorf("the metrics of the operator %q cannot be registered: %w", m.wanted, err)
		}
		m.opened.Store(true)
	}
	m.users++
	return nil
}

// Close takes all series of the operator out of the registry, when the last one of
// those who have opened it has called it. Whatever happens later is not counted.
func (m *Metrics) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users--; m.users > 0 {
		return
	}
	m.opened.Store(false)
	m.registerer.Unregister(m.state)
	ours := prometheus.Labels{"operator": m.operator}
	for _, c := range []counter{m.attempts, m.writes, m.errors, m.restarts} {
		c.DeletePartialMatch(ours)
	}
	m.durations.DeletePartialMatch(ours)
}

// claim takes the name, or the first one like it that nobody has: whose state is
// registered, to him it belongs.
func (m *Metrics) claim() error {
	m.operator = m.wanted
	for number := 2; ; number++ {
		m.state = newStateCollector(m.operator, &m.source)
		err := m.registerer.Register(m.state)
		if !errors.As(err, &prometheus.AlreadyRegisteredError{}) {
			return err
		}
		m.operator = fmt.Sprintf("%s-%d", m.wanted, number)
	}
}
