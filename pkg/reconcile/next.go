package reconcile

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// nextPass says when the next pass over an object is due. The zero value means that nothing is due until something
// happens.
type nextPass struct {
	Due   bool
	After time.Duration // 0: at once
}

// in returns that a pass is due after a delay.
func in(delay time.Duration) nextPass { return nextPass{Due: true, After: max(0, delay)} }

// soonest returns the earlier of two.
func soonest(a, b nextPass) nextPass {
	if !a.Due || b.Due && b.After < a.After {
		return b
	}
	return a
}

// requeueAfter returns the delay for queues, for which 0 means none.
func (n nextPass) requeueAfter() time.Duration {
	if !n.Due {
		return 0
	}
	return max(n.After, time.Nanosecond)
}

// urgent is the priority of the next pass, even if the last one was not urgent.
var urgent = new(0)

// result returns the answer of a worker to its queue.
func (n nextPass) result() ctrl.Result {
	return ctrl.Result{RequeueAfter: n.requeueAfter(), Priority: urgent}
}
