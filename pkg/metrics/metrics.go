package metrics

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type (
	counter   = *prometheus.CounterVec
	histogram = *prometheus.HistogramVec
)

// Metrics are the metrics of one operator. A nil pointer counts nothing. They are
// safe for concurrent use. Nothing is counted or exposed before Open and after Close.
type Metrics struct {
	wanted     string // the name of the operator
	registerer prometheus.Registerer
	source     source

	attempts, writes, errors, restarts counter
	reviews, refusals, children        counter
	conversions                        counter
	durations, reviewDurations         histogram
	conversionDurations, shardMoves    histogram

	state *stateCollector // since Open
	// operator is the name in the labels, since Open.
	operator string
	since    time.Time // when it was opened
	opened   atomic.Bool
}

// New creates the metrics of an operator. It fails if the registry has other metrics
// with the same names.
func New(registerer prometheus.Registerer, operator string) (*Metrics, error) {
	m := &Metrics{registerer: registerer, wanted: operator}
	problem := errors.Join(
		shared(m, &m.attempts, newCounter("kopf_handler_attempts_total", "Attempts of handlers, by outcome.",
			"resource", "kind", "handler", "outcome")),
		shared(m, &m.durations, newHistogram("kopf_handler_duration_seconds", "Duration of handler calls in seconds.",
			// From handlers that only compute to those that wait for machines. Handlers that take longer should be daemons.
			[]float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800},
			"resource", "kind", "handler")),
		shared(m, &m.writes, newCounter("kopf_object_writes_total", "Writes to handled objects, by purpose and by the answer of the API server.",
			"resource", "reason", "answer")),
		shared(m, &m.errors, newCounter("kopf_object_errors_total", "Errors of the API server or of the framework that delayed the handling of an object.",
			"resource")),
		shared(m, &m.restarts, newCounter("kopf_watch_restarts_total", "Restarts of watches, except routine ones.",
			"resource", "reason")),
		shared(m, &m.reviews, newCounter("kopf_admission_reviews_total", "Calls of admission handlers, by outcome.",
			"kind", "handler", "outcome")),
		shared(m, &m.reviewDurations, newHistogram("kopf_admission_duration_seconds", "Duration of calls of admission handlers in seconds.",
			[]float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30}, // the API server waits for 30 seconds at most
			"kind", "handler")),
		shared(m, &m.refusals, newCounter("kopf_admission_errors_total", "Admission reviews that were not answered, by status code.",
			"code")),
		shared(m, &m.conversions, newCounter("kopf_conversions_total", "Objects that the API server let the operator convert to another version, by outcome.",
			"resource", "from", "to", "outcome")),
		shared(m, &m.conversionDurations, newHistogram("kopf_conversion_duration_seconds", "Duration of the conversion of one object in seconds.",
			[]float64{0.0001, 0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30}, // a list has thousands of objects
			"resource")),
		shared(m, &m.shardMoves, newHistogram("kopf_shard_move_duration_seconds", "Duration of the steps of moves of shards in seconds: takeover or drain.",
			[]float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}, // the grace period is 20 seconds by default
			"step")),
		shared(m, &m.children, newCounter("kopf_child_writes_total", "Changes of children by their handler, by operation.",
			"resource", "handler", "operation")),
	)
	if problem != nil {
		return nil, fmt.Errorf("the metrics cannot be registered: %w", problem)
	}
	return m, nil
}

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
	m.since = time.Now()
	m.opened.Store(true)
	return nil
}

// Close removes all series of the operator from the registry. Nothing is counted
// afterwards. Call it once, after Open.
func (m *Metrics) Close() {
	m.opened.Store(false)
	m.registerer.Unregister(m.state)
	ours := prometheus.Labels{"operator": m.operator}
	for _, c := range []counter{m.attempts, m.writes, m.errors, m.restarts, m.reviews, m.refusals, m.children, m.conversions} {
		c.DeletePartialMatch(ours)
	}
	m.durations.DeletePartialMatch(ours)
	m.reviewDurations.DeletePartialMatch(ours)
	m.conversionDurations.DeletePartialMatch(ours)
	m.shardMoves.DeletePartialMatch(ours)
}

func newCounter(name, help string, labels ...string) counter {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"operator"}, labels...))
}

func newHistogram(name, help string, buckets []float64, labels ...string) histogram {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, append([]string{"operator"}, labels...))
}

// shared registers a collector, or uses the one that another operator registered.
func shared[C prometheus.Collector](m *Metrics, into *C, collector C) error {
	err := m.registerer.Register(collector)
	var registered prometheus.AlreadyRegisteredError
	if errors.As(err, &registered) {
		if existing, ok := registered.ExistingCollector.(C); ok {
			collector = existing
			err = nil
		}
	}
	*into = collector
	return err
}

// Observe sets the function that returns the state of the operator. It is called
// whenever metrics are collected, from any goroutine, and must be fast.
func (m *Metrics) Observe(state func() State) {
	if m != nil {
		m.source.Store(&state)
	}
}

func (m *Metrics) on() bool { return m != nil && m.opened.Load() }

// add increments a counter. Label values that Prometheus rejects, such as invalid
// UTF-8 in the id of a handler, are not counted.
func add(to counter, values ...string) {
	if series, err := to.GetMetricWithLabelValues(values...); err == nil {
		series.Inc()
	}
}

// Attempt counts one attempt of a handler, and its duration if it was called.
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

// Write counts one write to a handled object.
func (m *Metrics) Write(resource string, reason Reason, answer Answer) {
	if m.on() {
		add(m.writes, m.operator, resource, string(reason), string(answer))
	}
}

// ChildWrite counts a write that has changed a child of a handler.
func (m *Metrics) ChildWrite(resource, handler string, operation ChildOperation) {
	if m.on() {
		add(m.children, m.operator, resource, handler, string(operation))
	}
}

// Error counts an error, not of a handler, that delayed the handling of an object.
func (m *Metrics) Error(resource string) {
	if m.on() {
		add(m.errors, m.operator, resource)
	}
}

// Restart counts the restart of a watch, except after the routine end of a watch.
func (m *Metrics) Restart(resource string, reason RestartReason) {
	if m.on() {
		add(m.restarts, m.operator, resource, string(reason))
	}
}

// Review counts the call of an admission handler.
func (m *Metrics) Review(kind, handler string, outcome Review, took time.Duration) {
	if !m.on() {
		return
	}
	add(m.reviews, m.operator, kind, handler, string(outcome))
	if series, err := m.reviewDurations.GetMetricWithLabelValues(m.operator, kind, handler); err == nil {
		series.Observe(took.Seconds())
	}
}

// Refusal counts an admission review that was not answered, by the status code of HTTP.
func (m *Metrics) Refusal(code int) {
	if m.on() {
		add(m.refusals, m.operator, strconv.Itoa(code))
	}
}

// Conversion counts the conversion of an object.
func (m *Metrics) Conversion(resource, from, to string, converted bool, took time.Duration) {
	if !m.on() {
		return
	}
	outcome := Converted
	if !converted {
		outcome = ConversionFailed
	}
	add(m.conversions, m.operator, resource, from, to, string(outcome))
	if series, err := m.conversionDurations.GetMetricWithLabelValues(m.operator, resource); err == nil {
		series.Observe(took.Seconds())
	}
}
