package metrics

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of one operator. A nil pointer is an operator without metrics.
// They are safe for concurrent use.
type Metrics struct {
	operator   string
	registerer prometheus.Registerer
	state      *stateCollector

	attempts, writes, errors, restarts counter
	durations                          histogram

	users  atomic.Int32 // parts of the operator that run
	closed atomic.Bool
}

// New makes the metrics of an operator. If another one that runs has the name
// already, this one is called after it: "kopf-2". An error means that the registry
// has other metrics by the names of ours.
func New(registerer prometheus.Registerer, operator string) (*Metrics, error) {
	m := &Metrics{registerer: registerer}
	problem := errors.Join(
		shared(m, &m.attempts, newAttempts()), shared(m, &m.durations, newDurations()),
		shared(m, &m.writes, newWrites()), shared(m, &m.errors, newErrors()), shared(m, &m.restarts, newRestarts()),
	)
	if problem == nil {
		problem = m.claim(operator)
	}
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

// claim takes the name, or the first one like it that nobody has: whose state is
// registered, to him it belongs.
func (m *Metrics) claim(operator string) error {
	name := operator
	for number := 2; ; number++ {
		state := newStateCollector(name)
		err := m.registerer.Register(state)
		if errors.As(err, &prometheus.AlreadyRegisteredError{}) {
			name = fmt.Sprintf("%s-%d", operator, number)
			continue
		}
		m.operator, m.state = name, state
		return err
	}
}

// Operator is the value of the label "operator".
func (m *Metrics) Operator() string {
	if m == nil {
		return ""
	}
	return m.operator
}

// Observe says whom to ask for the state of the operator. It is asked whenever the
// metrics are collected, from any goroutine, and must be quick.
func (m *Metrics) Observe(state func() State) {
	if m != nil {
		m.state.source.Store(&state)
	}
}

// Around makes a part of the operator keep the metrics: when the last one of those
// that were started has returned, the metrics are closed.
func (m *Metrics) Around(run func(context.Context) error) func(context.Context) error {
	if m == nil {
		return run
	}
	return func(ctx context.Context) error {
		m.users.Add(1)
		defer func() {
			if m.users.Add(-1) == 0 {
				m.Close()
			}
		}()
		return run(ctx)
	}
}

// Close takes all series of the operator out of the registry. Whatever happens
// later is not counted.
func (m *Metrics) Close() {
	if m == nil || m.closed.Swap(true) {
		return
	}
	m.registerer.Unregister(m.state)
	ours := prometheus.Labels{"operator": m.operator}
	for _, c := range []counter{m.attempts, m.writes, m.errors, m.restarts} {
		c.DeletePartialMatch(ours)
	}
	m.durations.DeletePartialMatch(ours)
}

func (m *Metrics) on() bool { return m != nil && !m.closed.Load() }

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
