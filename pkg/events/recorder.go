package events

import (
	"cmp"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/kopf-go/kopf/pkg/settings"
)

// The defaults of Options.
const (
	DefaultComponent    = settings.DefaultPostingComponent
	DefaultCapacity     = 1000 // at about 2 KB each
	DefaultBurst        = settings.DefaultPostingBurst
	DefaultRefill       = settings.DefaultPostingRefill
	DefaultDrainTimeout = 2 * time.Second  // a part of the 30 s that a pod has to stop
	complaintInterval   = time.Minute      // between two log lines about the same trouble
	requestTimeout      = 10 * time.Second // of one attempt to post
	retries             = 4                // after 1, 2, 4, 8 seconds: a restart of the API server
	retryDelay          = time.Second
)

// Options of a Recorder; the zero value is good for most operators.
type Options struct {
	// Component is who the events come from. Default: DefaultComponent.
	Component string
	// Instance is which of several replicas they come from. Default: the host
	// name, which in a pod is the pod's name.
	Instance string
	// Level is that of the least important events that Info, Warn and Exception
	// post. Default: slog.LevelInfo, all of them.
	Level slog.Level
	// Scheme tells the kinds of typed objects that do not know their own.
	// Default: none; events about such objects are errors then.
	Scheme *runtime.Scheme
	// Logger hears about events that are lost. Default: nobody does.
	Logger logr.Logger
	// Capacity is how many events can wait. Default: DefaultCapacity.
	Capacity int
	// Burst is how many events of one type an object can have at once, before
	// they are limited to one per Refill. Lines of the log count apart from all
	// other events: they must not crowd out what has come of the handlers.
	// Defaults: DefaultBurst, DefaultRefill.
	Burst  int
	Refill time.Duration
	// DrainTimeout is how long a recorder that is stopped goes on with the
	// events that wait. Default: DefaultDrainTimeout.
	DrainTimeout time.Duration
}

// Recorder posts events. It is safe for concurrent use. A nil Recorder posts
// nothing: this is how posting is switched off.
type Recorder struct {
	options    Options
	client     corev1client.EventsGetter
	queue      chan *corev1.Event
	clock      *strictClock
	correlator *record.EventCorrelator
	complaints complaints

	posted, suppressed, dropped, failed atomic.Int64
}

// New makes a recorder that posts through the client. Nothing is posted before
// Start runs, but events can wait already.
func New(client corev1client.EventsGetter, options Options) *Recorder {
	options = options.withDefaults()
	clock := &strictClock{}
	return &Recorder{
		options: options,
		client:  client,
		queue:   make(chan *corev1.Event, options.Capacity),
		clock:   clock,
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
			Clock:       clock,
			BurstSize:   options.Burst,
			QPS:         float32(1 / options.Refill.Seconds()),
			MessageFunc: combined,
			SpamKeyFunc: budget,
		}),
		complaints: newComplaints(options.Logger),
	}
}

func (o Options) withDefaults() Options {
	o.Component = cmp.Or(o.Component, DefaultComponent)
	if o.Instance == "" {
		o.Instance, _ = os.Hostname() // the field is optional
	}
	o.Capacity = cmp.Or(max(o.Capacity, 0), DefaultCapacity)
	o.Burst = cmp.Or(max(o.Burst, 0), DefaultBurst)
	o.Refill = cmp.Or(max(o.Refill, 0), DefaultRefill)
	o.DrainTimeout = cmp.Or(max(o.DrainTimeout, 0), DefaultDrainTimeout)
	return o
}

// Post reports something about an object. It never waits, and never fails: what
// cannot be posted is counted, see Stats.
//
// The type is usually Normal or Warning; any other word can be used. The reason
// is a short word in CamelCase for machines, the message a line for people. Type
// and reason are made single words if they are not; a message longer than 1024
// bytes loses its middle, and control characters become spaces. Secrets have no
// place in either: many can read events.
func (r *Recorder) Post(ref corev1.ObjectReference, eventType, reason, message string) {
	if r == nil || isEvent(ref) {
		return
	}
	select {
	case r.queue <- r.newEvent(ref, eventType, reason, message):
	default:
		r.dropped.Add(1)
	}
}

// Stats counts what has become of the events since the recorder was made.
type Stats struct {
	Posted     int64 // are in the cluster, on their own or as the count of another one
	Suppressed int64 // the object had too many
	Dropped    int64 // the queue was full, or the recorder was stopped
	Failed     int64 // refused by the API server, or it could not be reached
}

// Stats can be called at any time.
func (r *Recorder) Stats() Stats {
	if r == nil {
		return Stats{}
	}
	return Stats{
		Posted: r.posted.Load(), Suppressed: r.suppressed.Load(),
		Dropped: r.dropped.Load(), Failed: r.failed.Load(),
	}
}

// Enabled reports whether events of the level are posted; Info and its siblings ask.
func (r *Recorder) Enabled(level slog.Level) bool { return r != nil && level >= r.options.Level }

// Scheme is the one of the options; Event uses it.
func (r *Recorder) Scheme() *runtime.Scheme {
	if r == nil {
		return nil
	}
	return r.options.Scheme
}
