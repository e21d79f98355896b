package reconcile

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
)

// ActivityPath is the path at which operators serve their Activity, next to their metrics.
const ActivityPath = "/activity"

// Activity describes what an operator is doing now, and for one object. It has no values of
// the object, and no errors of handlers.
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
}

// ActiveCall is a running call of a handler.
type ActiveCall struct {
	Handler string    `json:"handler"`
	Since   time.Time `json:"since"`
}

// Background is the current state of a daemon or a timer: waiting, running, abandoned, or ended.
type Background struct {
	Handler string `json:"handler"`
	Kind    string `json:"kind"`
	State   string `json:"state"`
}

// ActivityOf returns what the engine is doing, also for an object. It can be called at any time.
func (e *Engine) ActivityOf(key object.Key) Activity {
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
	return a
}
