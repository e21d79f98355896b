package metrics

import (
	"cmp"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kopf-go/kopf/pkg/internal/program"
	"github.com/kopf-go/kopf/pkg/shards"
)

// State is the current state of an operator.
type State struct {
	Ready   bool // all objects that existed at the start are known, except those that may not be listed
	Leading bool // this replica handles the objects, or those of its shards, unless paused
	Paused  bool // another operator handles the objects
	// Startup is how long it took until Ready. It is zero until then.
	Startup time.Duration

	Queue      Queue
	Calls      Calls
	Watches    []Watches
	Background []Background
	Held       []Held
	Rollouts   []Rollout
	Objects    []Objects
	Indices    []Index
	Children   []Children
	Events     Events
	// Shards are those of the operator. It is nil if the objects are not divided into shards.
	Shards *Shards
	// Requests are those to the API server. It is nil if their number has no limit.
	Requests *Requests
	// CertificateExpiry is when the certificate of the admission server expires. It is zero if
	// there is none, or if it is unknown.
	CertificateExpiry time.Time
}

// Objects counts the objects of one resource by what happens to them now.
type Objects struct {
	Resource string
	// Queued wait for a worker, Handling are in a pass, Delayed wait for the next attempt of
	// a handler or of a write, and nothing is due for those at Rest.
	Queued, Handling, Delayed, Rest int
	// Contended are those to which the operator writes less often, because another client undoes its writes.
	Contended int
}

// Index is the size of the index that a function fills.
type Index struct {
	Handler string
	Keys    int
}

// Children counts the children that a handler wants for all objects of a resource, by what kstatus
// says about them.
type Children struct {
	Resource, Handler          string
	Ready, Progressing, Failed int
	// Contended are those that another client keeps changing, so that they are restored less often.
	Contended int
}

// Events counts Kubernetes events by their outcome.
type Events struct{ Posted, Suppressed, Dropped, Failed int64 }

// Requests counts the requests to the API server that the window of the operator admits.
type Requests struct {
	Window            int // how many can be in flight now
	InFlight, Waiting int
	// Closed counts how often the window has closed, by the reason.
	Closed map[string]int64
}

// Shards are the shards of an operator, as one replica sees them.
type Shards struct {
	// Number is the number of all shards. Replicas is the number of the replicas that want shards.
	Number, Replicas int
	// Joined reports whether this replica takes part.
	Joined bool
	// Leader is a replica without shards that this one waits for. It is empty if there is none.
	Leader string
	// Held are the shards that this replica handles and keeps. It gives up those that are Draining, within the grace
	// period, and those that are Overdue, because code of handlers has not returned. It has lost the Leases of those that
	// are Lost, and code of handlers has not returned.
	Held, Draining, Overdue, Lost shards.Set
	// Assigned is the number of shards that this replica should have.
	Assigned int
	// Unheld is the number of shards without a holder, and Longest is how long the first of them has had none.
	Unheld  int
	Longest time.Duration
	// Taken, Given and Losses count the shards that this replica got, has given up, and has lost.
	Taken, Given, Losses uint64
	// LeaseWrites counts the attempts to write Leases.
	LeaseWrites uint64
	// Objects is the number of objects by shard, of those that this replica handles.
	Objects map[int]int
	// Streams are the streams of handled objects, by who leaves out the objects of other replicas.
	Streams []SharedStreams
}

// SharedStreams counts the streams of one resource: those for which the API server leaves out the objects of other
// replicas, those for which the operator does, and those that show all objects.
type SharedStreams struct {
	Resource                 string
	ByServer, Here, Unshared int
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
	// Abandoned is the number of objects whose handlers have outlasted a pause.
	Abandoned int
}

// Watches counts the watches of one resource: one, or one per namespace.
type Watches struct {
	Resource                string
	Listing, Alive, Failing int
}

// Background counts the handlers of one kind, daemons or timers, of all objects.
type Background struct {
	Kind      string `json:"kind"`
	Waiting   int    `json:"waiting"`
	Running   int    `json:"running"`
	Abandoned int    `json:"abandoned"`
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
	Resource string `json:"resource"`
	Handler  string `json:"handler"`
	Revision string `json:"revision"`
	Waiting  int    `json:"waiting"`
	Running  int    `json:"running"`
	Done     int    `json:"done"`
	Failed   int    `json:"failed"`
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
	abandoned                    *prometheus.Desc
	watches, background, held    *prometheus.Desc
	rollout, objects, indices    *prometheus.Desc
	children, contended          *prometheus.Desc
	startup, undone              *prometheus.Desc
	events, expiry, build        *prometheus.Desc
	window, inFlight             *prometheus.Desc
	delayed, closed              *prometheus.Desc
	shards                       shardDescriptions
	buildInfo                    [3]string
}

func newStateCollector(operator string, from *source) *stateCollector {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, prometheus.Labels{"operator": operator})
	}
	const unknown = "unknown"
	ofProgram, ofLibrary := program.Versions()
	return &stateCollector{
		source:     from,
		buildInfo:  [3]string{cmp.Or(ofProgram, unknown), cmp.Or(ofLibrary, unknown), runtime.Version()},
		ready:      gauge("kopf_ready", "1 when all objects that existed at the start are known, except those that may not be listed."),
		leading:    gauge("kopf_leading", "1 when this replica handles objects, 0 when it is on standby."),
		paused:     gauge("kopf_paused", "1 when handling is paused because another operator handles the objects."),
		depth:      gauge("kopf_queue_depth", "Objects waiting for a worker."),
		oldest:     gauge("kopf_queue_oldest_seconds", "Seconds that the oldest object in the queue has been waiting for a worker."),
		workers:    gauge("kopf_workers", "Maximum number of objects for which the operator itself works at the same time."),
		busy:       gauge("kopf_workers_busy", "Workers that have an object."),
		awaited:    gauge("kopf_workers_awaited", "Passes waiting until the operator can do its own work on their object."),
		running:    gauge("kopf_calls_running", "Calls of handlers that are running, except those of daemons and timers."),
		waiting:    gauge("kopf_calls_waiting", "Handlers waiting for a slot of a limit."),
		longest:    gauge("kopf_calls_longest_seconds", "Seconds that the longest of the running calls has been running."),
		abandoned:  gauge("kopf_calls_abandoned", "Objects with a handler that has not returned although it was canceled for a pause."),
		watches:    gauge("kopf_watches", "Watches, by state: listing, alive or failing.", "resource", "state"),
		background: gauge("kopf_background_handlers", "Daemons and timers of all objects, by state: waiting, running or abandoned.", "kind", "state"),
		held:       gauge("kopf_objects_held", "Objects with handlers that cannot be called until a person acts, by reason.", "resource", "reason"),
		rollout:    gauge("kopf_rollout_objects", "Objects in the rollout of a revision of a handler, by state: waiting, running, done or failed.", "resource", "handler", "revision", "state"),
		objects:    gauge("kopf_objects", "Objects, by state: queued, handling, delayed or rest.", "resource", "state"),
		indices:    gauge("kopf_index_keys", "Keys of indices.", "handler"),
		startup:    gauge("kopf_startup_seconds", "Seconds from the end of the startup handlers until all objects were known."),
		undone:     gauge("kopf_objects_contended", "Objects to which the operator writes less often, because another client undoes its writes.", "resource"),
		children:   gauge("kopf_children", "Children that handlers want, by state: ready, progressing or failed.", "resource", "handler", "state"),
		contended:  gauge("kopf_children_contended", "Children that another client keeps changing.", "resource", "handler"),
		events:     gauge("kopf_events_total", "Kubernetes events, by outcome: posted, suppressed, dropped or failed.", "outcome"),
		expiry:     gauge("kopf_certificate_expiry_timestamp_seconds", "When the certificate of the admission server expires, in seconds since 1970."),
		window:     gauge("kopf_api_requests_window", "Maximum number of requests to the API server that may be in flight now."),
		inFlight:   gauge("kopf_api_requests_in_flight", "Requests to the API server that are in flight, except watches and leases."),
		delayed:    gauge("kopf_api_requests_waiting", "Requests waiting until fewer are in flight."),
		closed:     gauge("kopf_api_requests_window_closed_total", "How often the window of requests has closed, by reason: refused, unavailable, timeout or latency.", "reason"),
		shards:     newShardDescriptions(gauge),
		build:      gauge("kopf_build_info", "1, with the versions of the program, of the library, and of Go as labels.", "version", "library", "goversion"),
	}
}

// Describe lists the metrics.
func (c *stateCollector) Describe(into chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		c.ready, c.leading, c.paused, c.depth, c.oldest, c.workers, c.busy, c.awaited,
		c.running, c.waiting, c.longest, c.abandoned, c.watches, c.background, c.held, c.rollout,
		c.objects, c.undone, c.indices, c.children, c.contended, c.events, c.expiry, c.build, c.startup,
		c.window, c.inFlight, c.delayed, c.closed,
	} {
		into <- desc
	}
	c.shards.describe(into)
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
	if state.Startup > 0 {
		show(c.startup, state.Startup.Seconds())
	}
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
	show(c.abandoned, float64(state.Calls.Abandoned))
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
	for _, o := range state.Objects {
		show(c.objects, float64(o.Queued), o.Resource, "queued")
		show(c.objects, float64(o.Handling), o.Resource, "handling")
		show(c.objects, float64(o.Delayed), o.Resource, "delayed")
		show(c.objects, float64(o.Rest), o.Resource, "rest")
		show(c.undone, float64(o.Contended), o.Resource)
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
	for _, n := range state.Children {
		id := strings.ToValidUTF8(n.Handler, "?")
		show(c.children, float64(n.Ready), n.Resource, id, "ready")
		show(c.children, float64(n.Progressing), n.Resource, id, "progressing")
		show(c.children, float64(n.Failed), n.Resource, id, "failed")
		show(c.contended, float64(n.Contended), n.Resource, id)
	}
	if r := state.Requests; r != nil {
		show(c.window, float64(r.Window))
		show(c.inFlight, float64(r.InFlight))
		show(c.delayed, float64(r.Waiting))
		for reason, times := range r.Closed {
			into <- prometheus.MustNewConstMetric(c.closed, prometheus.CounterValue, float64(times), reason)
		}
	}
	if state.Shards != nil {
		c.shards.collect(into, *state.Shards)
	}
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

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
