package kopf

import "time"

// OperatorState is what an operator is doing at one moment, as Operator.State returns it.
type OperatorState struct {
	// Ready reports that the operator is running, and that Operator.Ready is closed.
	Ready bool
	// Leading reports that this replica handles the objects, and that no other replica
	// does. Without leader election, an operator always leads.
	Leading bool
	// Paused reports that this replica is the leader, but leaves the objects to another
	// operator: see settings.Peering.
	Paused bool
	// Watches are ordered by their resources and namespaces.
	Watches []WatchState
	// Queue are the objects that wait for a worker; none in a replica that stands by.
	Queue QueueState
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
	// Err is why the watch is not working now; nil if it is. It is retried. The error
	// comes from the API server or the network, so do not show it to strangers.
	Err error
}

// QueueState is the state of the queue of objects.
type QueueState struct {
	// Depth is how many objects could be handled now.
	Depth int
	// Oldest is how long the first of them has been waiting.
	Oldest time.Duration
	// Busy is how many of the Workers are handling an object.
	Busy, Workers int
}

// State returns what the operator is doing now. The state is zero before the operator
// has started, and when it has ended. State looks at every watch and at everything in the
// queue: call it a few times a second at most.
func (o *Operator) State() OperatorState {
	state := o.operator.State()
	result := OperatorState{
		Ready: state.Ready && isClosed(o.Ready()), Leading: state.Leading, Paused: state.Paused,
		Queue: QueueState{Depth: state.Queue.Depth, Oldest: state.Queue.Oldest, Busy: state.Queue.Busy, Workers: state.Queue.Workers},
	}
	for _, w := range o.operator.WatchStatuses() {
		result.Watches = append(result.Watches, WatchState{Resource: w.Resource, Namespace: w.Namespace, Listed: w.Listed, Err: w.Err})
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
