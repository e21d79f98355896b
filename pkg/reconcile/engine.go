package reconcile

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/events/handlerlog"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/contention"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Poster reports something about an object as a Kubernetes event. It must not
// block.
type Poster interface {
	Post(about corev1.ObjectReference, eventType, reason, message string)
}

// Config is everything that an Engine needs.
type Config struct {
	Handlers registry.Handlers
	Settings settings.Settings
	Logger   logr.Logger
	// REST and HTTP reach the cluster.
	REST *rest.Config
	HTTP *http.Client
	// Client is for the handlers.
	Client client.Client
	// Poster takes events about objects.
	Poster Poster
	// Resources tells which resources the cluster serves.
	Resources discovery.Source
	// Metrics count what happens; nil: nobody counts.
	Metrics *metrics.Metrics
	// Memos are what the operator as a whole keeps in memory; nil: nothing yet.
	Memos *memo.Values
	// Paused: it begins with a pause; SetPaused ends that.
	Paused bool
	// Discovered is told what the cluster serves, whenever that was looked at; nil:
	// nobody wants to know. It must be quick.
	Discovered func(present discovery.Snapshot)
	// Scoped is told which namespaces are watched each on its own, whenever that is
	// looked at; nil: nobody wants to know. It must be quick.
	Scoped func(namespaces []string)
	// Context puts what handlers may ask the context for into it.
	Context func(ctx context.Context, about About) context.Context
}

// Engine serves the handlers of one operator. Watch and Work are its two halves:
// a standby replica only watches, the active one works too. Each of them can be
// called once.
type Engine struct {
	Config
	declared int // handlers in all, those of admission too
	served   servings
	filling  gate          // indices, of what has come while handlers are called
	listing  atomic.Bool   // the watches have begun
	watching chan struct{} // closed when all resources are known and listed
	memories memories
	lines    *lines
	told     *handlerlog.Events // by handlers, in their logs
	disputes *contention.Detector[claimed]
	// supervisor has the daemons and timers of all objects.
	supervisor *daemons.Supervisor
	said       sync.Map // what is reported once an operator

	hurry   signal // the cluster may offer something else now
	changed signal // the watches may not be the right ones now

	activity activity
	leading  atomic.Bool // somebody has asked to work, and is not done
	// tolerance is the time until which handlers may go on whatever happens;
	// Abort ends it.
	tolerance context.Context
	abort     context.CancelCauseFunc

	mu    sync.Mutex
	queue *queue // nil: nobody works

	// working lives on when the operator is asked to stop, until the grace
	// period is over; stopping tells that it was asked to.
	working  context.Context
	stopping <-chan struct{}
}

// New makes an engine; it does nothing yet.
func New(config Config) *Engine {
	config.Settings = config.Settings.WithDefaults()
	declared := len(config.Handlers)
	config.Handlers = config.Handlers.Watching() // nothing is watched for admission alone
	config.Logger = handlerlog.Lazily(config.Logger)
	if config.Memos == nil {
		config.Memos = memo.NewValues(nil)
	}
	tolerance, abort := context.WithCancelCause(context.Background())
	return &Engine{
		tolerance: tolerance, abort: abort,
		Config: config, declared: declared,
		watching: make(chan struct{}),
		activity: activity{paused: config.Paused, resumed: make(chan struct{})},
		hurry:    make(signal, 1), changed: make(signal, 1),
		lines:    newLines(config.Settings.Queueing.EventBacklog),
		told:     config.lines(),
		disputes: contention.New[claimed](config.Settings.Queueing.ContentionDelays),
		supervisor: daemons.New(daemons.Options{
			Backoff: config.Settings.Execution.Backoff, CancellationPolling: config.Settings.Background.CancellationPolling,
		}),
	}
}

// lines are what the log of handlers becomes; nil: no events.
func (c Config) lines() *handlerlog.Events {
	s := c.Settings.Posting
	if s.Disabled || s.WithoutLogs || c.Poster == nil {
		return nil
	}
	return &handlerlog.Events{Poster: c.Poster, Level: s.Level}
}

// Ready is closed when all objects are known.
func (e *Engine) Ready() <-chan struct{} { return e.watching }

// open begins to fill the queue: with everything that is there already, and
// from now on with what changes.
func (e *Engine) open(_ context.Context, waiting workqueue.TypedRateLimitingInterface[object.Key]) error {
	e.lines.open()
	e.mu.Lock()
	e.queue = waiting.(*queue) //nolint:errcheck // the controller has been given no other one
	e.mu.Unlock()
	for _, s := range e.served.all() {
		if s.indexed() {
			continue
		}
		for _, snapshot := range s.all() {
			// Whatever was there before this process began to work was handled
			// by somebody else, or by nobody.
			m := e.memories.of(s.key(snapshot))
			m.initial.Store(true)
			m.settled = "" // its daemons and timers are to be started
		}
		for _, key := range e.memories.in(object.StreamKey{Resource: s.name}) { // those that have gone, too
			e.queue.Add(key)
		}
	}
	return nil
}

// shut ends what open has begun, when the workers have gone.
func (e *Engine) shut() {
	e.lines.shut()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = nil
}

// dismiss forgets an object that is gone while nobody works: there are no passes
// that would do it. A standby can be one for as long as the process lives.
func (e *Engine) dismiss(key object.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queue == nil {
		e.memories.forget(key)
	}
}

// enqueue asks for a pass; it does nothing while nobody works.
func (e *Engine) enqueue(key object.Key) {
	if queue := e.waiting(); queue != nil {
		queue.Add(key)
	}
}

// waiting is the queue; nil while nobody works.
func (e *Engine) waiting() *queue {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.queue
}
