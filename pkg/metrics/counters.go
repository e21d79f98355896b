package metrics

import "github.com/prometheus/client_golang/prometheus"

type (
	counter   = *prometheus.CounterVec
	histogram = *prometheus.HistogramVec
)

// buckets returns upper bounds in seconds, from handlers that only compute to those
// that wait for machines. Handlers that take longer should be daemons.
func buckets() []float64 {
	return []float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800}
}

func newCounter(name, help string, labels ...string) counter {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"operator"}, labels...))
}

func newAttempts() counter {
	return newCounter("kopf_handler_attempts_total", "Attempts of handlers, by outcome.",
		"resource", "kind", "handler", "outcome")
}

func newDurations() histogram {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "kopf_handler_duration_seconds", Help: "Duration of handler calls in seconds.", Buckets: buckets(),
	}, []string{"operator", "resource", "kind", "handler"})
}

func newWrites() counter {
	return newCounter("kopf_object_writes_total", "Writes to handled objects, by purpose and by the answer of the API server.",
		"resource", "reason", "answer")
}

func newChildWrites() counter {
	return newCounter("kopf_child_writes_total", "Changes of children by their handler, by operation.", "resource", "handler", "operation")
}

func newErrors() counter {
	return newCounter("kopf_object_errors_total", "Errors of the API server or of the framework that delayed the handling of an object.", "resource")
}

func newRestarts() counter {
	return newCounter("kopf_watch_restarts_total", "Restarts of watches, except routine ones.", "resource", "reason")
}

func newReviews() counter {
	return newCounter("kopf_admission_reviews_total", "Calls of admission handlers, by outcome.", "kind", "handler", "outcome")
}

func newReviewDurations() histogram {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "kopf_admission_duration_seconds", Help: "Duration of calls of admission handlers in seconds.",
		Buckets: []float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30}, // the API server waits for 30 seconds at most
	}, []string{"operator", "kind", "handler"})
}

func newRefusals() counter {
	return newCounter("kopf_admission_errors_total", "Admission reviews that were not answered, by status code.", "code")
}
