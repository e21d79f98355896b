package metrics

// A rate needs two values: the first failure would be invisible if its series began with it.
// So all series that alerts look at begin with 0.

// Watching begins the series of a resource whose objects are watched. The handlers are those
// of the resource, and writable says whether they store records.
func (m *Metrics) Watching(resource string, writable bool, handlers ...Handler) {
	if !m.on() {
		return
	}
	for _, h := range handlers {
		for _, outcome := range outcomes() {
			begin(m.attempts, m.operator, h.Resource, h.Kind, h.ID, string(outcome))
		}
	}
	for _, reason := range []RestartReason{Interrupted, Rewound, Unavailable} {
		begin(m.restarts, m.operator, resource, string(reason))
	}
	begin(m.errors, m.operator, resource)
	if !writable {
		return
	}
	for _, reason := range reasons() {
		for _, answer := range answers() {
			begin(m.writes, m.operator, resource, string(reason), string(answer))
		}
	}
}

// Ensuring begins the series of the children of a handler.
func (m *Metrics) Ensuring(resource, handler string) {
	if !m.on() {
		return
	}
	for _, operation := range childOperations() {
		begin(m.children, m.operator, resource, handler, string(operation))
	}
}

// Reviewing begins the series of an admission handler.
func (m *Metrics) Reviewing(kind, handler string) {
	if !m.on() {
		return
	}
	for _, outcome := range reviews() {
		begin(m.reviews, m.operator, kind, handler, string(outcome))
	}
	for _, code := range []string{"400", "404", "503"} { // the usual ones
		begin(m.refusals, m.operator, code)
	}
}

// Converting begins the series of a conversion between two versions of a resource.
func (m *Metrics) Converting(resource, from, to string) {
	if !m.on() {
		return
	}
	for _, outcome := range []ConversionOutcome{Converted, ConversionFailed} {
		begin(m.conversions, m.operator, resource, from, to, string(outcome))
	}
	for _, code := range []string{"400", "404", "503"} {
		begin(m.refusals, m.operator, code)
	}
}

// begin creates a series with the value 0, unless it exists.
func begin(series counter, values ...string) { _, _ = series.GetMetricWithLabelValues(values...) }
