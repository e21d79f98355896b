package metrics

import (
	"cmp"
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kopf-go/kopf/pkg/internal/program"
)

// show passes a gauge on.
type show = func(desc *prometheus.Desc, value float64, labels ...string)

// showObjects shows the numbers of objects.
func (c *stateCollector) showObjects(state State, show show) {
	for _, o := range state.Objects {
		show(c.objects, float64(o.Queued), o.Resource, "queued")
		show(c.objects, float64(o.Handling), o.Resource, "handling")
		show(c.objects, float64(o.Delayed), o.Resource, "delayed")
		show(c.objects, float64(o.Rest), o.Resource, "rest")
	}
	for _, h := range state.Held {
		show(c.held, float64(h.Objects), h.Resource, string(h.Reason))
	}
	for _, r := range state.Rollouts {
		show(c.rollout, float64(r.Waiting), r.Resource, r.Handler, r.Revision, "waiting")
		show(c.rollout, float64(r.Running), r.Resource, r.Handler, r.Revision, "running")
		show(c.rollout, float64(r.Done), r.Resource, r.Handler, r.Revision, "done")
		show(c.rollout, float64(r.Failed), r.Resource, r.Handler, r.Revision, "failed")
	}
	for _, i := range state.Indices {
		show(c.indices, float64(i.Keys), strings.ToValidUTF8(i.Handler, "?"))
	}
}

// showChildren shows the numbers of children.
func (c *stateCollector) showChildren(state State, show show) {
	for _, n := range state.Children {
		id := strings.ToValidUTF8(n.Handler, "?")
		show(c.children, float64(n.Ready), n.Resource, id, "ready")
		show(c.children, float64(n.Progressing), n.Resource, id, "progressing")
		show(c.children, float64(n.Failed), n.Resource, id, "failed")
		show(c.contended, float64(n.Contended), n.Resource, id)
	}
}

// showRest shows what is about no objects.
func (c *stateCollector) showRest(state State, into chan<- prometheus.Metric, show show) {
	show(c.build, 1, c.buildInfo[:]...)
	if !state.CertificateExpiry.IsZero() {
		show(c.expiry, float64(state.CertificateExpiry.Unix()))
	}
	for _, e := range []struct {
		outcome string
		number  int64
	}{{"posted", state.Events.Posted}, {"suppressed", state.Events.Suppressed}, {"dropped", state.Events.Dropped}, {"failed", state.Events.Failed}} {
		into <- prometheus.MustNewConstMetric(c.events, prometheus.CounterValue, float64(e.number), e.outcome)
	}
}

// buildInfo returns the versions of the program, of this library, and of Go.
func buildInfo() [3]string {
	const unknown = "unknown"
	ofProgram, ofLibrary := program.Versions()
	return [3]string{cmp.Or(ofProgram, unknown), cmp.Or(ofLibrary, unknown), runtime.Version()}
}
