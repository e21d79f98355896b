package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Open puts the series of the operator into the registry. If another operator that
// runs has the name already, this one is called after it: "kopf-2".
func (m *Metrics) Open() error {
	if err := m.claim(); err != nil {
		return fmt.Errorf("the metrics of the operator %q cannot be registered: %w", m.wanted, err)
	}
	m.opened.Store(true)
	return nil
}

// Close takes all series of the operator out of the registry. Whatever happens later
// is not counted. It is called once, after Open.
func (m *Metrics) Close() {
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
