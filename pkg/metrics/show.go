package metrics

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
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

// library is the path of the module of this package.
const library = "github.com/kopf-go/kopf"

// buildInfo returns the versions of the program, of this library, and of Go.
func buildInfo() [3]string {
	const unknown = "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return [3]string{unknown, unknown, runtime.Version()}
	}
	versions := [3]string{info.Main.Version, unknown, runtime.Version()}
	if versions[0] == "" {
		versions[0] = unknown
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == library && m.Version != "" {
			versions[1] = m.Version
		}
	}
	return versions
}
