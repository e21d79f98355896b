package reconcile

import (
	"cmp"
	"slices"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/reconcile/converge"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// WatchStatus is the state of one watch.
type WatchStatus = watch.Status

// WatchStatuses returns the current states of the watches in order. It can be called at
// any time.
func (e *Engine) WatchStatuses() []WatchStatus {
	all := e.watcher.Statuses()
	slices.SortFunc(all, func(a, b WatchStatus) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(rank(a), rank(b)))
	})
	return all
}

// rank puts the watches of children after the others.
func rank(s WatchStatus) int {
	if s.Children {
		return 1
	}
	return 0
}

// State returns the current state of the engine. It can be called at any time, and checks
// every watch and the entire queue.
func (e *Engine) State() metrics.State {
	leading := e.leading.Load() // a standby replica is not paused
	state := metrics.State{
		Ready: e.isReady(), Startup: e.watcher.Startup(), Leading: leading, Paused: leading && e.pause.isPaused(),
		Queue: e.queueState(), Calls: e.countCalls(), Watches: countWatches(e.WatchStatuses()),
		Background: []metrics.Background{e.countBackground(handler.OnDaemon), e.countBackground(handler.OnTimer)},
	}
	if leading { // a replica on standby does not follow what happens to the objects
		state.Held = e.objects.held.Counts()
		for _, r := range e.revisions.Numbers() {
			state.Rollouts = append(state.Rollouts, metrics.Rollout{
				Resource: r.Resource, Handler: r.ID, Revision: r.Revision, Waiting: r.Waiting, Running: r.Running, Done: r.Done, Failed: r.Failed,
			})
		}
		state.Objects = e.countObjects()
		state.Children = e.countChildren()
	}
	state.Indices = e.indexSizes()
	return state
}

// countObjects counts the objects of each resource with handlers, by what happens to them.
func (e *Engine) countObjects() (counts []metrics.Objects) {
	known := e.currentQueue().Objects()
	contended := e.writer.Contended()
	for _, r := range e.resources.all() {
		if r.isObservedOnly() {
			continue
		}
		c := known[r.Name]
		c.Resource = r.Name
		c.Contended = contended[r.Name]
		size := r.Size()
		if e.isSharded() && r.IsWhole { // other replicas handle some of them
			size = e.countOwn(r)
		}
		c.Rest = max(0, size-c.Queued-c.Handling-c.Delayed)
		counts = append(counts, c)
	}
	return counts
}

// countOwn counts the objects of a resource that this replica handles.
func (e *Engine) countOwn(r *resource) (number int) {
	for _, snapshot := range r.Objects() {
		if !e.isOthers(snapshot) {
			number++
		}
	}
	return number
}

// ObjectsByShard counts the objects of the shards that this replica handles. It looks at all of them.
func (e *Engine) ObjectsByShard() map[int]int {
	counts := map[int]int{}
	for _, shard := range e.tenures.shards() {
		counts[shard] = 0
	}
	for _, r := range e.resources.all() {
		if r.isObservedOnly() {
			continue
		}
		for _, snapshot := range r.Objects() {
			if t := e.tenures.ofSnapshot(snapshot); t != nil {
				counts[t.shard]++
			}
		}
	}
	return counts
}

// SharedStreams counts the streams of handled objects, by who leaves out the objects of other replicas.
func (e *Engine) SharedStreams() (counts []metrics.SharedStreams) {
	for _, w := range e.WatchStatuses() {
		if w.Children {
			continue
		}
		if last := len(counts) - 1; last < 0 || counts[last].Resource != w.Resource {
			counts = append(counts, metrics.SharedStreams{Resource: w.Resource})
		}
		switch count := &counts[len(counts)-1]; w.Filter {
		case kube.ByServer:
			count.ByServer++
		case kube.ByOperator:
			count.Here++
		default:
			count.Unshared++
		}
	}
	return counts
}

// countChildren counts the children of each handler, also if there are none.
func (e *Engine) countChildren() (counts []metrics.Children) {
	known := e.converger.Counts()
	for _, r := range e.resources.all() {
		for _, id := range r.ensuring() {
			n := known[converge.Ensured{Resource: r.Name, Handler: id}]
			n.Resource = r.Name
			n.Handler = id
			counts = append(counts, n)
		}
	}
	return counts
}

// ensuring returns the ids of the handlers that return children.
func (r *resource) ensuring() (ids []string) {
	for _, d := range r.Declared {
		if id := d.Top().ID; d.Ensures != nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// indexSizes returns the sizes of the indices that the operator fills.
func (e *Engine) indexSizes() (sizes []metrics.Index) {
	for _, d := range e.Handlers.OfKind(handler.OnIndex) {
		sized, ok := d.Table.(interface{ Len() int })
		isKnown := slices.ContainsFunc(sizes, func(i metrics.Index) bool { return i.Handler == d.ID })
		if ok && !isKnown {
			sizes = append(sizes, metrics.Index{Handler: d.ID, Keys: sized.Len()})
		}
	}
	return sizes
}

// beginSeries begins the series of a resource, so that the first failure is an increase.
func (e *Engine) beginSeries(r *resource) {
	var handlers []metrics.Handler
	for _, d := range r.Declared {
		if !d.Kind.IsAdmission() && !d.Kind.IsActivity() && d.Kind != handler.Conditions {
			handlers = append(handlers, r.measured(d))
		}
	}
	for _, id := range r.ensuring() {
		e.Metrics.Ensuring(r.Name, id)
	}
	e.Metrics.Watching(r.Name, len(r.Changing)+len(r.Background)+len(r.Triggered) > 0, handlers...)
}

// countCalls counts the calls of handlers.
func (e *Engine) countCalls() metrics.Calls {
	s := e.slots.Usage()
	e.mu.Lock()
	defer e.mu.Unlock()
	return metrics.Calls{Running: s.Running, Waiting: s.Waiting, Longest: s.Longest, Abandoned: len(e.abandoned)}
}

// queueState returns the state of the queue.
func (e *Engine) queueState() metrics.Queue {
	state := e.currentQueue().State()
	state.Workers = e.Settings.Execution.Workers
	state.Awaited = e.permits.Waiting()
	return state
}

func (e *Engine) countBackground(kind handler.Kind) metrics.Background {
	n := e.supervisor.Count(kind)
	return metrics.Background{Kind: string(kind), Waiting: n.Waiting, Running: n.Running, Abandoned: n.Abandoned}
}

// countWatches counts the watches of each resource. The watches must be sorted by resource.
func countWatches(all []WatchStatus) (counts []metrics.Watches) {
	for _, w := range all {
		if last := len(counts) - 1; last < 0 || counts[last].Resource != w.Resource {
			counts = append(counts, metrics.Watches{Resource: w.Resource})
		}
		switch count := &counts[len(counts)-1]; {
		case w.Err != nil:
			count.Failing++
		case !w.Listed:
			count.Listing++
		default:
			count.Alive++
		}
	}
	return counts
}
