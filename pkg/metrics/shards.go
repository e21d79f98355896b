package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kopf-go/kopf/pkg/shards"
)

// shardDescriptions are the metrics of operators with shards.
type shardDescriptions struct {
	number, replicas, joined *prometheus.Desc
	own, assigned            *prometheus.Desc
	unheld, longest          *prometheus.Desc
	moves, writes            *prometheus.Desc
	objects, streams         *prometheus.Desc
}

func newShardDescriptions(gauge func(name, help string, labels ...string) *prometheus.Desc) shardDescriptions {
	return shardDescriptions{
		number:   gauge("kopf_shards_configured", "Number of shards that the objects are divided into."),
		replicas: gauge("kopf_shards_replicas", "Replicas that want shards, as this replica sees them."),
		joined:   gauge("kopf_shards_joined", "1 when this replica takes part in the division, 0 when it can take no shards."),
		own:      gauge("kopf_shards", "Shards of this replica, by state: held, draining, overdue or lost.", "state"),
		assigned: gauge("kopf_shards_assigned", "Shards that this replica should hold."),
		unheld:   gauge("kopf_shards_unheld", "Shards that no replica holds, as this replica sees them."),
		longest:  gauge("kopf_shards_unheld_seconds", "Seconds that the first of these shards has had no holder."),
		moves:    gauge("kopf_shard_moves_total", "Shards that this replica got, gave up, or lost: taken, given or lost.", "move"),
		writes:   gauge("kopf_shard_lease_writes_total", "Attempts to write the Leases of shards and replicas."),
		objects:  gauge("kopf_shard_objects", "Objects of the shards that this replica handles.", "shard"),
		streams:  gauge("kopf_shard_streams", "Streams of objects, by who leaves out the objects of other replicas: server, operator or none.", "resource", "filter"),
	}
}

func (d shardDescriptions) describe(into chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		d.number, d.replicas, d.joined, d.own, d.assigned, d.unheld, d.longest, d.moves, d.writes, d.objects, d.streams,
	} {
		into <- desc
	}
}

func (d shardDescriptions) collect(into chan<- prometheus.Metric, state Shards) {
	show := func(desc *prometheus.Desc, value float64, labels ...string) {
		into <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	count := func(desc *prometheus.Desc, value uint64, labels ...string) {
		into <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
	}
	show(d.number, float64(state.Number))
	show(d.replicas, float64(state.Replicas))
	show(d.joined, number(state.Joined))
	for name, own := range map[string]shards.Set{"held": state.Held, "draining": state.Draining, "overdue": state.Overdue, "lost": state.Lost} {
		show(d.own, float64(own.Len()), name)
	}
	show(d.assigned, float64(state.Assigned))
	show(d.unheld, float64(state.Unheld))
	show(d.longest, state.Longest.Seconds())
	count(d.moves, state.Taken, "taken")
	count(d.moves, state.Given, "given")
	count(d.moves, state.Losses, "lost")
	count(d.writes, state.LeaseWrites)
	for shard, objects := range state.Objects {
		show(d.objects, float64(objects), strconv.Itoa(shard))
	}
	for _, s := range state.Streams {
		show(d.streams, float64(s.ByServer), s.Resource, "server")
		show(d.streams, float64(s.Here), s.Resource, "operator")
		show(d.streams, float64(s.Unshared), s.Resource, "none")
	}
}

// ShardStep is a step of the move of a shard, whose duration is measured.
type ShardStep string

// The steps of moves.
const (
	Takeover ShardStep = "takeover" // from the Lease until the objects are listed, and handled
	Drain    ShardStep = "drain"    // until nothing of the shard is handled anymore
)

// ShardMove counts a step of the move of a shard.
func (m *Metrics) ShardMove(step ShardStep, took time.Duration) {
	if !m.on() {
		return
	}
	if series, err := m.shardMoves.GetMetricWithLabelValues(m.operator, string(step)); err == nil {
		series.Observe(took.Seconds())
	}
}
