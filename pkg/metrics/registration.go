package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Open registers the series of the operator. If a running operator has the name
// already, a number is appended: "kopf-2".
func (m *Metrics) Open() error {
	// A name belongs to the operator whose state is registered.
	m.operator = m.wanted
	for number := 2; ; number++ {
		m.state = newStateCollector(m.operator, &m.source)
		err := m.registerer.Register(m.state)
		if err == nil {
			break
		}
		if !errors.As(err, &prometheus.AlreadyRegisteredError{}) {
			return fmt.Errorf("the metrics of the operator %q cannot be registered: %w", m.wanted, err)
		}
		m.operator = fmt.Sprintf("%s-%d", m.wanted, number)
	}
	m.opened.Store(true)
	return nil
}

// Close removes all series of the operator from the registry. Nothing is counted
// afterwards. Call it once, after Open.
func (m *Metrics) Close() {
	m.opened.Store(false)
	m.registerer.Unregister(m.state)
	ours := prometheus.Labels{"operator": m.operator}
	for _, c := range []counter{m.attempts, m.writes, m.errors, m.restarts, m.reviews, m.refusals, m.children} {
		c.DeletePartialMatch(ours)
	}
	m.durations.DeletePartialMatch(ours)
	m.reviewDurations.DeletePartialMatch(ours)
}
