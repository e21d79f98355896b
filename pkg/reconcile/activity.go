package reconcile

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
)

// ActivityPath is the path at which operators serve their Activity, next to their metrics.
const ActivityPath = "/activity"

// Activity describes what an operator is doing now, and for one object. It has no values of
// objects, and no errors of handlers.
type Activity struct {
	At time.Time `json:"at"`
	// Leading is set if this process handles objects, unless it is Paused.
	Ready   bool `json:"ready"`
	Leading bool `json:"leading"`
	Paused  bool `json:"paused"`
	// Queued objects wait for a worker, the first of them for QueueAge. Running calls have slots,
	// and Waiting handlers do not.
	Queued   int             `json:"queued"`
	QueueAge metav1.Duration `json:"queueAge"`
	Running  int             `json:"running"`
	Waiting  int             `json:"waiting"`

	// Version is the version of the object that the operator knows; empty for none.
	Version string `json:"version,omitempty"`
	// Handling is set while a pass looks at the object, or calls its handlers. From is when the
	// next pass may begin; zero if none is needed.
	Handling bool      `json:"handling"`
	From     time.Time `json:"from,omitzero"`
	// Contention delays the writes to the object, because another client undoes them.
	Contention metav1.Duration `json:"contention,omitzero"`
	// Calls are the running ones. Limited are the handlers that wait for a slot.
	Calls      []ActiveCall `json:"calls,omitempty"`
	Limited    []string     `json:"limited,omitempty"`
	Background []Background `json:"background,omitempty"`

	// Replica names this process in an operator with shards. Shard is that of the object. An answer about no object has
	// all Shards that this process has not finished handling instead.
	Replica string        `json:"replica,omitempty"`
	Shard   *ActiveShard  `json:"shard,omitempty"`
	Shards  []ActiveShard `json:"shards,omitempty"`
	// Operator is what this process is doing for all objects. Only an answer about no object has it.
	Operator *OperatorActivity `json:"operator,omitempty"`
}

// OperatorActivity is what a process of an operator is doing for all objects.
type OperatorActivity struct {
	// Totals are those since the process has started.
	Totals metrics.Totals `json:"totals"`
	// Calls are running, and Limited wait for a slot: of each, at most MaxListedCalls, the oldest first.
	Calls   []ObjectCall `json:"calls,omitempty"`
	Limited []ObjectCall `json:"limited,omitempty"`
	// Background are the daemons and timers of all objects.
	Background []metrics.Background `json:"background,omitempty"`
	Watches    []ActiveWatch        `json:"watches,omitempty"`
	Rollouts   []metrics.Rollout    `json:"rollouts,omitempty"`
	// Missing are the rules that refused requests of the operator need. They are unknown in the manager of another
	// program, unless it observes its connection.
	Missing []string `json:"missing,omitempty"`
}

// MaxListedCalls is the number of calls of all objects in an Activity.
const MaxListedCalls = 50

// ActiveWatch is a watch of a resource, in a namespace or in all.
type ActiveWatch struct {
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	// State is listing, alive, or failing, with the Error then.
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	// Children is set if it shows the children of handlers of Ensure.
	Children bool `json:"children,omitempty"`
}

// ActiveShard is what a process is doing for a shard.
type ActiveShard struct {
	Number int `json:"number"`
	// Handling is set while this process handles the objects of the shard. It has seen all of them then.
	Handling bool `json:"handling"`
	// Draining is since when this process gives up the shard, which another one should handle, or zero. Leaving is set if it
	// gives up all shards, because it stops.
	Draining time.Time `json:"draining,omitzero"`
	Leaving  bool      `json:"leaving,omitempty"`
	// Lost is set if the lease was lost meanwhile.
	Lost bool `json:"lost,omitempty"`
	// Objects is the number of objects with handlers in the shard. Left is the number of those that keep a shard that is
	// given up, and Calls are some of the calls that these wait for.
	Objects int          `json:"objects"`
	Left    int          `json:"left,omitempty"`
	Calls   []ObjectCall `json:"calls,omitempty"`
}

// ObjectCall is a call of a handler for an object. It has not begun if Since is zero.
type ObjectCall struct {
	ActiveCall

	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// ActiveCall is a running call of a handler.
type ActiveCall struct {
	Handler string    `json:"handler"`
	Since   time.Time `json:"since,omitzero"`
}

// Background is the current state of a daemon or a timer: waiting, running, abandoned, or ended.
type Background struct {
	Handler string `json:"handler"`
	Kind    string `json:"kind"`
	State   string `json:"state"`
}

// ActivityOf returns what the engine is doing, also for an object, whose uid can be unknown. It can be called at any time.
func (e *Engine) ActivityOf(key object.Key, uid types.UID) Activity {
	state := e.State()
	a := Activity{
		At: time.Now(), Ready: state.Ready, Leading: state.Leading, Paused: state.Paused,
		Queued: state.Queue.Depth, QueueAge: metav1.Duration{Duration: state.Queue.Oldest}, Running: state.Calls.Running, Waiting: state.Calls.Waiting,
	}
	if r := e.resources.get(key.Resource); r != nil {
		if snapshot := r.Cached(key.NamespacedName); snapshot != nil {
			a.Version = snapshot.GetResourceVersion()
			a.Contention.Duration = e.writer.ContentionDelay(key, snapshot)
		}
	}
	a.Handling, a.From = e.currentQueue().Of(key)
	if a.From.IsZero() {
		a.From = e.currentQueue().Listed(key)
	}
	calls, limited := e.slots.Of(key)
	reporter := e.reporter(key)
	for _, c := range calls {
		a.Calls = append(a.Calls, ActiveCall{reporter.ReportedID(c.ID), c.Began})
	}
	for _, id := range limited {
		a.Limited = append(a.Limited, reporter.ReportedID(id))
	}
	for _, d := range e.supervisor.Of(func(host daemons.Host) bool { b, ok := host.(*background); return ok && b.key == key }) {
		a.Background = append(a.Background, Background{d.Handler.ID, string(d.Handler.Kind), d.What})
	}
	if e.isSharded() && uid != "" {
		a.Shard = &ActiveShard{Number: e.Division.Of(key.Namespace, uid), Handling: e.tenures.of(key.Namespace, uid) != nil}
	}
	return a
}

// ActivityOfAll returns what the engine is doing for all objects. It can be called at any time.
func (e *Engine) ActivityOfAll() *OperatorActivity {
	state := e.State()
	a := &OperatorActivity{Totals: e.Metrics.Totals(), Rollouts: state.Rollouts, Background: state.Background}
	calls, limited := e.slots.All(MaxListedCalls)
	for _, c := range calls {
		a.Calls = append(a.Calls, e.objectCall(c.Claim, c.Began))
	}
	for _, claim := range limited {
		a.Limited = append(a.Limited, e.objectCall(claim, time.Time{}))
	}
	for _, w := range e.WatchStatuses() {
		active := ActiveWatch{Resource: w.Resource, Namespace: w.Namespace, State: "alive", Children: w.Children}
		switch {
		case w.Err != nil:
			active.State = "failing"
			active.Error = w.Err.Error()
		case !w.Listed:
			active.State = "listing"
		}
		a.Watches = append(a.Watches, active)
	}
	return a
}

func (e *Engine) objectCall(c call.Claim, since time.Time) ObjectCall {
	return ObjectCall{ActiveCall{e.reporter(c.Key).ReportedID(c.ID), since}, c.Key.Resource, c.Key.Namespace, c.Key.Name}
}

// ActivityOfShards returns what the engine is doing for the shards whose objects it handles, by their numbers. It looks at all
// objects. It can be called at any time.
func (e *Engine) ActivityOfShards() map[int]ActiveShard {
	shards := map[int]ActiveShard{}
	for _, t := range e.tenures.all() {
		s := ActiveShard{Number: t.shard, Handling: true}
		if t.isEnding() {
			s.Left, s.Calls = e.keeping(t)
		}
		shards[t.shard] = s
	}
	for _, r := range e.resources.all() {
		if r.isObservedOnly() {
			continue
		}
		for _, snapshot := range r.Objects() {
			number := e.Division.Of(snapshot.GetNamespace(), snapshot.GetUID())
			if s, ok := shards[number]; ok {
				s.Objects++
				shards[number] = s
			}
		}
	}
	return shards
}

// keeping returns how many objects keep a shard that must be given up, and some of the calls that they wait for.
func (e *Engine) keeping(t *tenure) (left int, calls []ObjectCall) {
	e.mu.Lock()
	keys := e.keysIn(t)
	e.mu.Unlock()
	for _, key := range keys[:min(len(keys), maxReportedKeys)] {
		running, _ := e.slots.Of(key)
		for _, c := range running {
			calls = append(calls, e.objectCall(c.Claim, c.Began))
		}
	}
	return len(keys), calls
}
