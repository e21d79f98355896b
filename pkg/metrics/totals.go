package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Totals count what one operator has done since its metrics were opened, without labels.
type Totals struct {
	Since time.Time `json:"since"`
	// Calls are the attempts of handlers. Failed are those that have failed for good, Retried those that are repeated.
	Calls   int64 `json:"calls"`
	Retried int64 `json:"retried"`
	Failed  int64 `json:"failed"`
	// Writes are those to handled objects that the API server has stored.
	Writes int64 `json:"writes"`
	// Errors have delayed the handling of objects, and are not those of handlers.
	Errors int64 `json:"errors"`
}

// Totals returns what the operator has done. It looks at all of its series.
func (m *Metrics) Totals() (t Totals) {
	if !m.on() {
		return t
	}
	t.Since = m.since
	m.each(m.attempts, func(labels map[string]string, value int64) {
		switch Outcome(labels["outcome"]) {
		case Waiting: // for sub-handlers, which are counted themselves
			return
		case Retried:
			t.Retried += value
		case Failed:
			t.Failed += value
		}
		t.Calls += value
	})
	m.each(m.writes, func(labels map[string]string, value int64) {
		if Answer(labels["answer"]) == Written && Reason(labels["reason"]) != Check {
			t.Writes += value
		}
	})
	m.each(m.errors, func(_ map[string]string, value int64) { t.Errors += value })
	return t
}

// each calls a function for each series of the operator.
func (m *Metrics) each(of counter, add func(labels map[string]string, value int64)) {
	series := make(chan prometheus.Metric)
	go func() {
		defer close(series)
		of.Collect(series)
	}()
	for one := range series {
		var read dto.Metric
		if one.Write(&read) != nil {
			continue
		}
		labels := map[string]string{}
		for _, label := range read.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if labels["operator"] == m.operator {
			add(labels, int64(read.GetCounter().GetValue()))
		}
	}
}
