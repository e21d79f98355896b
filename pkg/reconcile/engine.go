package reconcile

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/events/handlerlog"
	"github.com/kopf-go/kopf/pkg/internal/reportonce"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/queue"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Poster reports something about an object as a Kubernetes event. It must not
// block.
type Poster = report.Poster

// CallContext is what the context of a handler's call is about.
type CallContext struct {
	Body     func() *object.Body // as it is when it is asked for
	Resource selector.Resource
	Logger   logr.Logger
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
	// Poster takes events about objects; nil: no events.
	Poster Poster
	// Resources returns which resources the cluster serves.
	Resources discovery.Source
	// Metrics count what happens; nil: no metrics.
	Metrics *metrics.Metrics
	// Memos are what the operator as a whole keeps in memory; nil: nothing yet.
	Memos *memo.Values
	// Paused: it begins with a pause; SetPaused ends that.
	Paused bool
	// Discovered is told what the cluster serves, and Scoped which namespaces are
	// watched each on its own, whenever that was looked at; nil: not told. They must
	// be quick.
	Discovered func(present discovery.Snapshot)
	Scoped     func(namespaces []string)
	// Context adds to a context what handlers may ask it for.
	Context func(ctx context.Context, call CallContext) context.Context
}

// Engine serves the handlers of one operator. Watch and Work are its two halves:
// a standby replica only watches, the active one works too. Each of them can be
// called once.
type Engine struct {
	Config

	resources resources
	objects   objects
	watcher   *watch.Watcher
	backlog   *queue.Backlog
	records   record.Keeper
	writer    *write.Writer
	// supervisor has the daemons and timers of all objects.
	supervisor *daemons.Supervisor
	// eventLogger turns the log lines of handlers into events; nil: it does not.
	eventLogger *handlerlog.Events
	reported    reportonce.SharedSet

	pause   pauseState
	leading atomic.Bool // Work was called, and has not returned
	// abortContext is done when handlers must end at once; abort ends it.
	abortContext context.Context
	abort        context.CancelCauseFunc

	mu    sync.Mutex
	queue *queue.Queue // nil: there are no workers
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
	s := config.Settings
	e := &Engine{
		Config:      config,
		pause:       pauseState{paused: config.Paused, resumed: make(chan struct{})},
		backlog:     queue.NewBacklog(s.Queueing.EventBacklog),
		records:     record.Keeper{Storages: s.Persistence},
		eventLogger: config.eventLogger(),
		supervisor:  daemons.New(daemons.Options{Backoff: s.Execution.Backoff, CancellationPolling: s.Background.CancellationPolling}),
	}
	e.abortContext, e.abort = context.WithCancelCause(context.Background())
	e.writer = write.New(write.Config{
		Records: e.records, Metrics: config.Metrics,
		ConsistencyTimeout: s.Persistence.ConsistencyTimeout, ContentionDelays: s.Queueing.ContentionDelays,
	})
	e.watcher = watch.New(watch.Config{
		Settings: s, Logger: config.Logger, REST: config.REST, HTTP: config.HTTP, Metrics: config.Metrics,
		Source: config.Resources, Selectors: config.Handlers.Selectors(), Handlers: declared, Consumer: consumer{e},
		Discovered: config.Discovered, Scoped: config.Scoped,
	})
	return e
}

// eventLogger returns what turns the log lines of handlers into events; nil if they
// must not be.
func (c Config) eventLogger() *handlerlog.Events {
	s := c.Settings.Posting
	if s.Disabled || s.WithoutLogs || c.Poster == nil {
		return nil
	}
	return &handlerlog.Events{Poster: c.Poster, Level: s.Level}
}

// Ready is closed when all objects are known.
func (e *Engine) Ready() <-chan struct{} { return e.watcher.Listed() }

// Watch finds the resources of the handlers and keeps their objects in memory,
// until the context is done: of all resources and namespaces that are there, from
// when they appear until they go.
//
// Specification: Scopes; Resource specification.
func (e *Engine) Watch(ctx context.Context) error {
	release, err := e.claimIndices()
	if err != nil {
		return err
	}
	defer release()
	defer e.stopIndexing()
	return e.watcher.Run(ctx)
}

// isReady reports whether handlers may be called already.
func (e *Engine) isReady() bool {
	select {
	case <-e.Ready():
		return true
	default:
		return false
	}
}

// enqueue asks for a pass; it does nothing while there are no workers.
func (e *Engine) enqueue(key object.Key) {
	if q := e.currentQueue(); q != nil {
		q.Add(key)
	}
}

// currentQueue returns the queue; nil while there are no workers.
func (e *Engine) currentQueue() *queue.Queue {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.queue
}

// objectLogger returns the logger for lines about an object.
func (e *Engine) objectLogger(key object.Key) logr.Logger {
	return e.Logger.WithValues("object", objectRef{e, key}, "resource", key.Resource)
}

// reporter reports on an object; once is what was reported on it, nil: nothing is
// reported once.
func (e *Engine) reporter(key object.Key, once *reportonce.Set) report.Reporter {
	return report.Reporter{
		Log: e.objectLogger(key), Poster: e.Poster, Posting: e.Settings.Posting,
		Object: once, Shared: &e.reported,
	}
}

// callContext makes the context of one call of a handler, and its logger.
func (e *Engine) callContext(ctx context.Context, r *resource, key object.Key, body func() *object.Body, d *handler.Declaration) (context.Context, logr.Logger) {
	call := CallContext{Body: body, Resource: r.Resource.Resource}
	call.Logger = e.eventLogger.Logger(e.objectLogger(key), body, "handler", d.ID)
	return e.Context(ctx, call), call.Logger
}
