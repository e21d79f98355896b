package reconcile

import (
	"cmp"
	"slices"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// WatchStatus is the state of one watch.
type WatchStatus = watch.Status

// WatchStatuses returns the current states of the watches in order. It can be called at
// any time.
func (e *Engine) WatchStatuses() []WatchStatus {
	var all []WatchStatus
	for _, r := range e.resources.all() {
		all = append(all, r.Statuses()...)
	}
	slices.SortFunc(all, func(a, b WatchStatus) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace))
	})
	return all
}

// State returns the current state of the engine. It can be called at any time, and checks
// every watch and the entire queue.
func (e *Engine) State() metrics.State {
	leading := e.leading.Load() // a standby replica is not paused
	state := metrics.State{
		Ready: e.isReady(), Leading: leading, Paused: leading && e.pause.isPaused(),
		Queue: e.queueState(), Calls: metrics.Calls(e.slots.State()), Watches: countWatches(e.WatchStatuses()),
		Background: []metrics.Background{e.countBackground(handler.OnDaemon), e.countBackground(handler.OnTimer)},
	}
	if leading { // a replica on standby does not follow what happens to the objects
		state.Held, state.Rollouts = e.objects.held.Counts(), e.countRollouts()
	}
	return state
}

// queueState returns the state of the queue.
func (e *Engine) queueState() metrics.Queue {
	state := e.currentQueue().State()
	state.Workers, state.Awaited = e.Settings.Execution.Workers, e.permits.Waiting()
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

// countRollouts returns the numbers of objects in rollouts.
func (e *Engine) countRollouts() (all []metrics.Rollout) {
	for _, r := range e.revisions.Numbers() {
		all = append(all, metrics.Rollout{
			Resource: r.Resource, Handler: r.ID, Revision: r.Revision, Waiting: r.Waiting, Running: r.Running, Done: r.Done, Failed: r.Failed,
		})
	}
	return all
}
