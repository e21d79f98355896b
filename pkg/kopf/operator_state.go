package kopf

import "time"

// OperatorState is the state of an operator at one moment. Operator.State returns it.
type OperatorState struct {
	// Ready reports that the operator is running, and that Operator.Ready is closed.
	Ready bool
	// Leading reports that this replica handles the objects, and no other replica does.
	// Without leader election, an operator is always leading, also with shards.
	Leading bool
	// Paused reports that this replica is the leader, but leaves the objects to another
	// operator. See settings.Peering.
	Paused bool
	// Watches are sorted by resource and namespace.
	Watches []WatchState
	// Queue is the state of the queue of objects. It is empty in a standby replica.
	Queue QueueState
	// Shards are those of this replica. It is nil without settings.Replicas.Shards.
	Shards *ShardsState
}

// ShardsState is the state of the shards of an operator, as one replica sees them.
type ShardsState struct {
	// Number is the number of all shards, and Replicas that of the replicas that share them.
	Number, Replicas int
	// Joined reports that this replica takes part. It does not while it cannot write its Leases, or while a replica that
	// elects a leader is running.
	Joined bool
	// Held are the shards whose objects this replica handles. It is giving up those that are Draining, because other
	// replicas must have them, or because it stops. Both are sorted.
	Held, Draining []int
	// Unheld is the number of shards that no replica holds now.
	Unheld int
}

// WatchState is the state of one watch: of a resource in the whole cluster or in one
// namespace.
type WatchState struct {
	// Resource is the name of the resource: "kopfexamples.v1.kopf.dev".
	Resource string
	// Namespace is empty for a watch of the whole cluster.
	Namespace string
	// Listed reports that all objects are known that existed when the watch began.
	Listed bool
	// Children reports that the watch shows only the children of handlers of Ensure.
	Children bool
	// Err is the reason why the watch does not work now, or nil if it works. The operator
	// retries it. The error comes from the API server or the network, so do not publish it.
	Err error
}

// QueueState is the state of the queue of objects.
type QueueState struct {
	// Depth is the number of objects that wait for a worker.
	Depth int
	// Oldest is how long the first of them has been waiting.
	Oldest time.Duration
	// Busy is the number of Workers that have an object. Running handlers need none.
	Busy, Workers int
}

// State returns the current state of the operator. It is the zero value before the operator
// starts and after it ends. State examines every watch and the whole queue, so call it a few
// times per second at most.
func (o *Operator) State() OperatorState {
	state := o.operator.State()
	result := OperatorState{
		Ready: state.Ready && isClosed(o.Ready()), Leading: state.Leading, Paused: state.Paused,
		Queue: QueueState{Depth: state.Queue.Depth, Oldest: state.Queue.Oldest, Busy: state.Queue.Busy, Workers: state.Queue.Workers},
	}
	if s := state.Shards; s != nil {
		draining := s.Draining
		for _, shard := range s.Overdue.Sorted() {
			draining = draining.With(shard)
		}
		result.Shards = &ShardsState{Number: s.Number, Replicas: s.Replicas, Joined: s.Joined, Held: s.Held.Sorted(), Draining: draining.Sorted(), Unheld: s.Unheld}
	}
	for _, w := range o.operator.WatchStatuses() {
		result.Watches = append(result.Watches, WatchState{Resource: w.Resource, Namespace: w.Namespace, Listed: w.Listed, Children: w.Children, Err: w.Err})
	}
	return result
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
