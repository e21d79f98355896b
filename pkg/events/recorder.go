package events

import (
	"cmp"
	"crypto/rand"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"

	"github.com/kopf-go/kopf/pkg/settings"
)

// The defaults of Options.
const (
	DefaultComponent    = settings.DefaultPostingComponent
	DefaultCapacity     = 1000 // at about 2 KB each
	DefaultBurst        = settings.DefaultPostingBurst
	DefaultRefill       = settings.DefaultPostingRefill
	DefaultDrainTimeout = 2 * time.Second  // part of the 30 s in which a pod must stop
	lossLogInterval     = time.Minute      // between two log lines about the same problem
	requestTimeout      = 10 * time.Second // for one attempt
	retries             = 4                // after 1, 2, 4, 8 seconds: long enough for a restart of the API server
	retryDelay          = time.Second
)

// Options configures a Recorder. The zero value suits most operators.
type Options struct {
	// Component is the source of the events. Default: DefaultComponent.
	Component string
	// Instance identifies the replica that posts the events. Default: the host
	// name, which is the pod's name in a pod.
	Instance string
	// NamePrefix begins the names of the events. Default: that of the object.
	NamePrefix string
	// Level is the lowest level of events that Info, Warn, and Exception post.
	// Default: slog.LevelInfo, which includes all of them.
	Level slog.Level
	// Scheme provides the kinds of typed objects that do not have their own.
	// Default: none, so events about such objects result in errors.
	Scheme *runtime.Scheme
	// Logger logs lost events. Default: they are not logged.
	Logger logr.Logger
	// Capacity is the maximum number of waiting events. Default: DefaultCapacity.
	Capacity int
	// Burst is the number of events of one type that an object can have at once,
	// before they are limited to one per Refill. Lines of the log have a separate
	// limit, so that they do not displace the outcomes of handlers. Defaults:
	// DefaultBurst, DefaultRefill.
	Burst  int
	Refill time.Duration
	// DrainTimeout limits how long a stopped recorder continues to post waiting
	// events. Default: DefaultDrainTimeout.
	DrainTimeout time.Duration
}

// Recorder posts events. It is safe for concurrent use. A nil Recorder posts nothing,
// which disables posting.
type Recorder struct {
	options    Options
	client     corev1client.EventsGetter
	queue      chan *corev1.Event
	clock      *strictClock
	correlator *record.EventCorrelator
	losses     lossLog

	posted, suppressed, dropped, failed atomic.Int64
}

// New returns a recorder that posts through the client. It queues events immediately,
// and posts them when Start runs.
func New(client corev1client.EventsGetter, options Options) *Recorder {
	options.Component = cmp.Or(options.Component, DefaultComponent)
	if options.Instance == "" {
		options.Instance, _ = os.Hostname() // the field is optional
	}
	options.Capacity = cmp.Or(max(options.Capacity, 0), DefaultCapacity)
	options.Burst = cmp.Or(max(options.Burst, 0), DefaultBurst)
	options.Refill = cmp.Or(max(options.Refill, 0), DefaultRefill)
	options.DrainTimeout = cmp.Or(max(options.DrainTimeout, 0), DefaultDrainTimeout)
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
			KeyFunc:     combinationKey,
			MessageFunc: combinedMessage,
			SpamKeyFunc: spamKey,
		}),
		losses: newLossLog(options.Logger),
	}
}

// Post queues an event about an object. It never waits and never fails: lost events are
// counted; see Stats.
//
// The type is usually Normal or Warning, but can be any other word. The reason is a
// short word in CamelCase for machines; the message is a line for people. Types and
// reasons are converted to single words. Messages longer than 1024 bytes are truncated
// in the middle, and their control characters become spaces. Do not put secrets into
// events: many users can read them.
func (r *Recorder) Post(ref corev1.ObjectReference, eventType, reason, message string) {
	if r == nil || isEvent(ref) {
		return
	}
	now := r.clock.Now()
	name := util.GenerateEventName(ref.Name, now.UnixNano())
	if r.options.NamePrefix != "" { // many objects and operators share it, so the time alone does not distinguish their events
		name = r.options.NamePrefix + strings.ToLower(rand.Text()[:16])
	}
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			// The API server accepts events about cluster-scoped objects only in the default namespace.
			Namespace: cmp.Or(ref.Namespace, metav1.NamespaceDefault),
		},
		InvolvedObject:      ref,
		Type:                singleWord(eventType, TypeNormal),
		Reason:              singleWord(reason, unspecified),
		Message:             singleLine(message),
		Count:               1,
		FirstTimestamp:      metav1.NewTime(now),
		LastTimestamp:       metav1.NewTime(now),
		Source:              corev1.EventSource{Component: r.options.Component},
		ReportingController: r.options.Component,
		ReportingInstance:   r.options.Instance,
	}
	select {
	case r.queue <- event:
	default:
		r.dropped.Add(1)
	}
}

// Stats counts the outcomes of the events since the recorder was created.
type Stats struct {
	Posted     int64 // stored in the cluster, or added to the count of another event
	Suppressed int64 // the object had too many events
	Dropped    int64 // the queue was full, or the recorder had stopped
	Failed     int64 // the API server rejected the event or was unreachable
}

// Stats returns the current counts. It can be called at any time.
func (r *Recorder) Stats() Stats {
	if r == nil {
		return Stats{}
	}
	return Stats{
		Posted: r.posted.Load(), Suppressed: r.suppressed.Load(),
		Dropped: r.dropped.Load(), Failed: r.failed.Load(),
	}
}

// Enabled reports whether Info, Warn, and Exception post events of the level.
func (r *Recorder) Enabled(level slog.Level) bool { return r != nil && level >= r.options.Level }

// Scheme returns the scheme of the options, which Event uses.
func (r *Recorder) Scheme() *runtime.Scheme {
	if r == nil {
		return nil
	}
	return r.options.Scheme
}
