package reconcile

import (
	"cmp"
	"slices"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/handler"
)

// Watching is the state of one watch.
type Watching struct {
	// Resource is its name, as keys have it; Namespace is empty for all of them.
	Resource, Namespace string
	// Listed: all objects are known that were there at its beginning.
	Listed bool
	// Err is why it does not go on; nil if it does. It is tried again.
	Err error
}

// Watching are the watches as they are now, in order. It can be called at any time.
func (e *Engine) Watching() []Watching {
	var all []Watching
	for _, s := range e.served.all() {
		for _, w := range s.streams.all() {
			all = append(all, Watching{s.name, w.namespace, w.listening.HasSynced(), w.trouble()})
		}
	}
	slices.SortFunc(all, func(a, b Watching) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace))
	})
	return all
}

// State is what the engine is doing now. It can be called at any time; it costs a
// look at every watch, and at everything that is in the queue.
func (e *Engine) State() metrics.State {
	leading := e.leading.Load() // a replica that stands by is not paused by anybody
	return metrics.State{
		Ready: e.ready(), Leading: leading, Paused: leading && e.activity.isPaused(),
		Queue: e.queued(), Watches: watchesOf(e.Watching()),
		Background: []metrics.Background{e.accompanying(handler.OnDaemon), e.accompanying(handler.OnTimer)},
	}
}

// queued is what waits for a worker.
func (e *Engine) queued() metrics.Queue {
	state := e.waiting().state()
	state.Workers = e.Settings.Execution.Workers
	return state
}

func (e *Engine) accompanying(kind handler.Kind) metrics.Background {
	n := e.supervisor.Count(kind)
	return metrics.Background{Kind: string(kind), Waiting: n.Waiting, Running: n.Running, Abandoned: n.Abandoned}
}

// watchesOf counts watches by their resources, in whose order they are.
func watchesOf(all []Watching) (counts []metrics.Watches) {
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
