package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// State is the current state of an operator.
type State struct {
	Ready   bool // all objects that existed at the start are known
	Leading bool // this replica handles the objects, unless paused
	Paused  bool // another operator handles the objects

	Queue      Queue
	Calls      Calls
	Watches    []Watches
	Background []Background
	Held       []Held
	Rollouts   []Rollout
}

// Queue is the state of the work queue.
type Queue struct {
	Depth  int           // objects that wait for a worker
	Oldest time.Duration // waiting time of the first of them
	// Busy is the number of active workers, Workers that of all.
	Busy, Workers int
	// Awaited is the number of passes that wait to do the work of the operator.
	Awaited int
}

// Calls is the state of the calls of handlers, except daemons and timers.
type Calls struct {
	Running int           // calls
	Waiting int           // handlers that wait for a slot
	Longest time.Duration // of the running calls
}

// Watches counts the watches of one resource: one, or one per namespace.
type Watches struct {
	Resource                string
	Listing, Alive, Failing int
}

// Background counts the handlers of one kind, daemons or timers, of all objects.
type Background struct {
	Kind                        string
	Waiting, Running, Abandoned int
}

// Held counts the held objects of one resource: some of their handlers cannot be called until
// a person acts.
type Held struct {
	Resource string
	Reason   HeldReason
	Objects  int
}

// Rollout counts the objects of one handler in the rollout of its revision.
type Rollout struct {
	Resource, Handler, Revision    string
	Waiting, Running, Done, Failed int
}

// source returns the state; it is nil before Observe.
type source = atomic.Pointer[func() State]

// stateCollector reads the state of one operator whenever metrics are collected.
type stateCollector struct {
	source *source

	ready, leading, paused       *prometheus.Desc
	depth, oldest, workers, busy *prometheus.Desc
	awaited                      *prometheus.Desc
	running, waiting, longest    *prometheus.Desc
	watches, background, held    *prometheus.Desc
	rollout                      *prometheus.Desc
}

func newStateCollector(operator string, from *source) *stateCollector {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, prometheus.Labels{"operator": operator})
	}
	return &stateCollector{
		source:     from,
		ready:      gauge("kopf_ready", "1 when all objects that existed at the start are known."),
		leading:    gauge("kopf_leading", "1 when this replica is the leader and handles objects, 0 when it is on standby."),
		paused:     gauge("kopf_paused", "1 when handling is paused because another operator handles the objects."),
		depth:      gauge("kopf_queue_depth", "Objects waiting for a worker."),
		oldest:     gauge("kopf_queue_oldest_seconds", "Seconds that the oldest object in the queue has been waiting for a worker."),
		workers:    gauge("kopf_workers", "Maximum number of objects for which the operator itself works at the same time."),
		busy:       gauge("kopf_workers_busy", "Workers that have an object."),
		awaited:    gauge("kopf_workers_awaited", "Passes waiting until the operator can do its own work on their object."),
		running:    gauge("kopf_calls_running", "Calls of handlers that are running, except those of daemons and timers."),
		waiting:    gauge("kopf_calls_waiting", "Handlers waiting for a slot of a limit."),
		longest:    gauge("kopf_calls_longest_seconds", "Seconds that the longest of the running calls has been running."),
		watches:    gauge("kopf_watches", "Watches, by state: listing, alive or failing.", "resource", "state"),
		background: gauge("kopf_background_handlers", "Daemons and timers of all objects, by state: waiting, running or abandoned.", "kind", "state"),
		held:       gauge("kopf_objects_held", "Objects with handlers that cannot be called until a person acts, by reason.", "resource", "reason"),
		rollout:    gauge("kopf_rollout_objects", "Objects in the rollout of a revision of a handler, by state: waiting, running, done or failed.", "resource", "handler", "revision", "state"),
	}
}

// Describe lists the metrics.
func (c *stateCollector) Describe(into chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		c.ready, c.leading, c.paused, c.depth, c.oldest, c.workers, c.busy, c.awaited,
		c.running, c.waiting, c.longest, c.watches, c.background, c.held, c.rollout,
	} {
		into <- desc
	}
}

// Collect reads the state of the operator.
func (c *stateCollector) Collect(into chan<- prometheus.Metric) {
	source := c.source.Load()
	if source == nil {
		return
	}
	state := (*source)()
	show := func(desc *prometheus.Desc, value float64, labels ...string) {
		into <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	show(c.ready, number(state.Ready))
	show(c.leading, number(state.Leading))
	show(c.paused, number(state.Paused))
	show(c.depth, float64(state.Queue.Depth))
	show(c.oldest, state.Queue.Oldest.Seconds())
	show(c.workers, float64(state.Queue.Workers))
	show(c.busy, float64(state.Queue.Busy))
	show(c.awaited, float64(state.Queue.Awaited))
	show(c.running, float64(state.Calls.Running))
	show(c.waiting, float64(state.Calls.Waiting))
	show(c.longest, state.Calls.Longest.Seconds())
	for _, w := range state.Watches {
		show(c.watches, float64(w.Listing), w.Resource, "listing")
		show(c.watches, float64(w.Alive), w.Resource, "alive")
		show(c.watches, float64(w.Failing), w.Resource, "failing")
	}
	for _, b := range state.Background {
		show(c.background, float64(b.Waiting), b.Kind, "waiting")
		show(c.background, float64(b.Running), b.Kind, "running")
		show(c.background, float64(b.Abandoned), b.Kind, "abandoned")
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
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
