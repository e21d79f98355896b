package metrics

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of one operator. A nil pointer is an operator without metrics.
// They are safe for concurrent use. Nothing is counted or shown before they are
// opened, and nothing when they are closed.
type Metrics struct {
	wanted     string // the name of the operator
	registerer prometheus.Registerer
	source     source

	attempts, writes, errors, restarts counter
	durations                          histogram

	state *stateCollector // since Open
	// operator is the name that it has got, since Open.
	operator string
	opened   atomic.Bool
}

// New makes the metrics of an operator. An error means that the registry has other
// metrics by the names of ours.
func New(registerer prometheus.Registerer, operator string) (*Metrics, error) {
	m := &Metrics{registerer: registerer, wanted: operator}
	problem := errors.Join(
		shared(m, &m.attempts, newAttempts()), shared(m, &m.durations, newDurations()),
		shared(m, &m.writes, newWrites()), shared(m, &m.errors, newErrors()), shared(m, &m.restarts, newRestarts()),
	)
	if problem != nil {
		return nil, fmt.Errorf("the metrics cannot be registered: %w", problem)
	}
	return m, nil
}

// shared registers a collector, or takes the one that another operator has
// registered.
func shared[C prometheus.Collector](m *Metrics, into *C, collector C) error {
	err := m.registerer.Register(collector)
	var registered prometheus.AlreadyRegisteredError
	if errors.As(err, &registered) {
		if existing, ok := registered.ExistingCollector.(C); ok {
			collector, err = existing, nil
		}
	}
	*into = collector
	return err
}

// Observe says whom to ask for the state of the operator. It is asked whenever the
// metrics are collected, from any goroutine, and must be quick.
func (m *Metrics) Observe(state func() State) {
	if m != nil {
		m.source.Store(&state)
	}
}

func (m *Metrics) on() bool { return m != nil && m.opened.Load() }

// add counts one. Values that Prometheus does not take, such as an id of a handler
// that is no text, are not counted.
func add(to counter, values ...string) {
	if series, err := to.GetMetricWithLabelValues(values...); err == nil {
		series.Inc()
	}
}

// Attempt counts one attempt of a handler. The duration counts if it was called.
func (m *Metrics) Attempt(h Handler, outcome Outcome, called bool, took time.Duration) {
	if !m.on() {
		return
	}
	add(m.attempts, m.operator, h.Resource, h.Kind, h.ID, string(outcome))
	if !called {
		return
	}
	if series, err := m.durations.GetMetricWithLabelValues(m.operator, h.Resource, h.Kind, h.ID); err == nil {
		series.Observe(took.Seconds())
	}
}

// Write counts one write to a handled object, by what it was for.
func (m *Metrics) Write(resource string, reason Reason, answer Answer) {
	if m.on() {
		add(m.writes, m.operator, resource, string(reason), string(answer))
	}
}

// Error counts an error that has postponed an object and was none of its handlers'.
func (m *Metrics) Error(resource string) {
	if m.on() {
		add(m.errors, m.operator, resource)
	}
}

// Restart counts a watch that has to be begun again, for a reason that is not the
// routine end of a watch.
func (m *Metrics) Restart(resource string, reason RestartReason) {
	if m.on() {
		add(m.restarts, m.operator, resource, string(reason))
	}
}
