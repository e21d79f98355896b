// Package reconcile contains the engine: it calls the handlers for what happens in the
// cluster, and writes their results back to the cluster.
//
// An Engine watches the resources that its handlers select (internal/watch), keeps the objects
// as compact snapshots, and lets a pool of workers make passes over them (workers.go,
// internal/queue). A pass is the unit of work. Read pass.go from top to bottom: a pass observes
// the object, makes its plan (internal/plan), and calls the handlers that are due (call), which
// means that they can be called now. It records their outcomes in as few writes as possible
// (internal/write, internal/record), and returns when the next pass must begin. Daemons and timers run alongside the passes (daemons),
// which write their edits.
//
// # Invariants
//
//   - Each object has one pass at a time. Different objects are handled in parallel.
//   - Only the pass writes to the object, through the writer.
//   - No pass starts with a version that is older than the operator's own last write, or
//     while the operator does not know whether that write was committed.
//   - The outcomes of handlers are never lost while the process lives: an update that
//     could not be written stays in memory until it can.
//   - A pass that finds nothing to do writes nothing.
//
// docs/guarantees.md describes the resulting guarantees and their limits.
//
// This package carries no compatibility promise.
package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/events/handlerlog"
	"github.com/kopf-go/kopf/pkg/internal/reportonce"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/converge"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/erasing"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/heldobjects"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/queue"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/undeclared"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
	"github.com/kopf-go/kopf/pkg/reconcile/recording"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/shards"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/pkg/tracing"
)

// Poster posts Kubernetes events about objects. It must not block.
type Poster = report.Poster

// CallContext contains the data for the context of a handler's call.
type CallContext struct {
	Body     func() *object.Body // returns the current body
	Resource selector.Resource
	Logger   logr.Logger
}

// Config contains everything that an Engine needs.
type Config struct {
	Handlers registry.Handlers
	Settings settings.Settings
	Logger   logr.Logger
	// REST and HTTP connect to the cluster.
	REST *rest.Config
	HTTP *http.Client
	// Client is the client for handlers.
	Client client.Client
	// Poster posts events about objects. Nil disables events.
	Poster Poster
	// Resources returns the resources that the cluster serves.
	Resources discovery.Source
	// Metrics count the work. Nil disables them.
	Metrics *metrics.Metrics
	// Recorder writes down what is seen and decided. Nil disables it.
	Recorder *recording.Recorder
	// Tracer makes spans. Nil disables them. It must have recovered the panics of users' code.
	Tracer tracing.Tracer
	// Division is how the objects are divided among replicas. If they are, HoldShard says what this one handles.
	Division shards.Division
	// Memos contains the operator's own values in memory. Nil means that there are none.
	Memos *memo.Values
	// Paused starts the engine with a pause, which SetPaused ends.
	Paused bool
	// Discovered is called with the resources that the cluster serves, and Scoped with
	// the namespaces that are watched separately, after every discovery. Both can be
	// nil, and must return quickly.
	Discovered func(present discovery.Snapshot)
	Scoped     func(namespaces []string)
	// Context adds the values that handlers need to a context.
	Context func(ctx context.Context, call CallContext) context.Context
}

// Engine handles the objects of one operator. Watch and Work are its two halves: a standby
// replica only watches, and the active replica also works. Each of them can be called
// once.
type Engine struct {
	Config

	resources   resources
	objects     objects
	tenures     tenures
	watcher     *watch.Watcher
	backlog     *queue.Backlog
	records     record.Keeper
	requests    *requests.Reader // nil: requests are ignored
	revisions   *revision.Reviser
	writer      *write.Writer
	permits     *call.Permits
	slots       *call.Slots
	maxUnpacked int // so many running calls keep their essences
	// runsCode is set if code of users stores the state of objects, chooses the handlers of a pass, or makes spans.
	runsCode bool
	spans    *spans // nil without a tracer
	// storesElsewhere is set if a storage is code of users, which can wait for something outside of the cluster.
	storesElsewhere bool
	// erasures lets storages erase what they keep of objects that are gone.
	erasures *erasing.Erasures
	// converger makes the children of objects what handlers want. It is nil if there are no
	// such handlers.
	converger *converge.Converger
	// spreads call such handlers for changes of indices. It is nil if none watches one.
	spreads map[*handler.Declaration]*triggers.Spread
	// supervisor runs the daemons and timers of all objects.
	supervisor *daemons.Supervisor
	// eventLogger turns log lines of handlers into events. Nil disables that.
	eventLogger *handlerlog.Events
	reported    reportonce.SharedSet
	undeclared  undeclared.Handlers

	pause   pauseState
	leading atomic.Bool // Work is running
	// exiting is set when Work must end, and over is closed when it has ended.
	exiting atomic.Bool
	over    chan struct{}
	// abortContext is done when handlers must end immediately; abort ends it.
	abortContext context.Context
	abort        context.CancelCauseFunc

	// children knows the children of all parents with handlers for them.
	children *triggers.Children
	// attentions wake daemons.
	attentions attentions

	mu    sync.Mutex                  // changes the queue, and guards the passes
	queue atomic.Pointer[queue.Queue] // nil without workers
	// detached are the passes that have returned their worker, and abandoned those of them that
	// have outlasted a pause.
	detached  map[object.Key]*pass
	abandoned map[object.Key]*abandoned
}

// maxUnpacked is the number of running calls that keep their essences: to pack and unpack them takes
// time, which is only worth it for the memory of many calls.
const maxUnpacked = 8

// New returns an engine that is not running yet.
func New(config Config) *Engine {
	config.Settings = config.Settings.WithDefaults()
	declared := config.Handlers.Count()
	config.Handlers = config.Handlers.Watching() // admission handlers need no watches
	config.Logger = handlerlog.Lazily(config.Logger)
	if config.Memos == nil {
		config.Memos = memo.NewValues(nil)
	}
	s := config.Settings
	e := &Engine{
		Config:          config,
		tenures:         tenures{division: config.Division},
		pause:           pauseState{paused: config.Paused, resumed: make(chan struct{})},
		backlog:         queue.NewBacklog(s.Queueing.EventBacklog),
		records:         record.Keeper{Storages: s.Persistence},
		maxUnpacked:     maxUnpacked,
		storesElsewhere: !isBuiltIn(s.Persistence.DiffBase) || !isBuiltIn(s.Persistence.Progress),
		spans:           newSpans(config.Tracer),
		undeclared:      undeclared.Handlers{Logger: config.Logger},
		children:        triggers.NewChildren(),
		detached:        map[object.Key]*pass{},
		abandoned:       map[object.Key]*abandoned{},
		over:            make(chan struct{}),
		supervisor:      daemons.New(daemons.Options{Backoff: s.Execution.Backoff, CancellationPolling: s.Background.CancellationPolling}),
	}
	isDefault := reflect.ValueOf(s.Execution.Lifecycle).Pointer() == reflect.ValueOf(lifecycles.AllAtOnce).Pointer()
	e.runsCode = e.storesElsewhere || !isDefault || config.Tracer != nil
	if !s.Posting.Disabled && !s.Posting.WithoutLogs && config.Poster != nil {
		e.eventLogger = &handlerlog.Events{Poster: config.Poster, Level: s.Posting.Level}
	}
	prefix := storage.RequestPrefix(s.Persistence.DiffBase, s.Persistence.Progress)
	if !s.Requests.Disabled {
		e.requests = requests.NewReader(prefix)
	}
	e.revisions = &e.objects.revisions
	e.revisions.Annotation = prefix + "/" + revision.Name
	e.revisions.Enqueue = e.enqueue
	e.revisions.Report = func(r revision.Report) { e.reportRollout(r) }
	e.objects.misfits.Report = heldobjects.LogLines(config.Logger)
	e.permits = call.NewPermits(s.Execution.Workers)
	e.slots = call.NewSlots(s.Execution.MaxCalls, e.enqueue)
	e.abortContext, e.abort = context.WithCancelCause(context.Background())
	e.erasures = erasing.New(erasing.Config{
		Storages: storage.Erasers(s.Persistence.DiffBase, s.Persistence.Progress), Permits: e.permits, Delays: s.Queueing.ErrorDelays,
		Exists: func(key object.Key, uid types.UID) bool {
			return e.resources.get(key.Resource).Has(key.NamespacedName, uid)
		},
		Enqueue: e.enqueue,
		Log: func(key object.Key, last *object.Body) logr.Logger {
			return e.loggerOf(key, func() *object.Body { return last })
		},
	})
	e.writer = write.New(write.Config{
		Name: cmp.Or(s.Name, settings.DefaultName), Records: e.records, Metrics: config.Metrics,
		ConsistencyTimeout: s.Persistence.ConsistencyTimeout, ContentionDelays: s.Queueing.ContentionDelays,
	})
	e.watcher = watch.New(watch.Config{
		Settings: s, Logger: config.Logger, REST: config.REST, HTTP: config.HTTP, Metrics: config.Metrics,
		Source: config.Resources, Selectors: config.Handlers.Selectors(), Handlers: declared, Places: config.Handlers.Places, Consumer: consumer{e}, Division: config.Division,
		Discovered: config.Discovered, Scoped: config.Scoped,
	})
	e.addConverger()
	return e
}

// Ready returns a channel that is closed when all objects are known that may be listed.
func (e *Engine) Ready() <-chan struct{} { return e.watcher.Listed() }

// Watch finds the resources of the handlers and keeps their objects in memory until the
// context is done. It starts and stops watches as resources and namespaces appear and
// disappear.
//
// Specification: Scopes; Resource specification.
func (e *Engine) Watch(ctx context.Context) error {
	release, err := e.claimIndices()
	if err != nil {
		return err
	}
	defer release()
	var cluster dynamic.Interface // without a cache, for the children
	if e.converger != nil {
		cluster, err = dynamic.NewForConfigAndClient(e.REST, e.HTTP)
		if err != nil {
			return fmt.Errorf("the children of objects cannot be applied: %w", err)
		}
		e.converger.Start(cluster)
	}
	stopped, err := e.watchIndices(ctx)
	if err != nil {
		return err
	}
	defer stopped()
	defer e.objects.misfits.Stop()
	defer e.stopIndexing()
	return e.watcher.Run(ctx, cluster)
}

// Relist lists the objects of a resource again, because the API server may show other contents of the versions that
// are known, and waits until that is done.
func (e *Engine) Relist(ctx context.Context, of schema.GroupResource) { e.watcher.Relist(ctx, of) }

// isReady reports whether handlers can be called.
func (e *Engine) isReady() bool {
	select {
	case <-e.Ready():
		return true
	default:
		return false
	}
}

// enqueue requests a pass. It does nothing while there are no workers.
func (e *Engine) enqueue(key object.Key) {
	if q := e.currentQueue(); q != nil {
		q.Add(key)
	}
}

// currentQueue returns the queue, or nil while there are no workers. It takes no lock: others
// call it while they hold one.
func (e *Engine) currentQueue() *queue.Queue { return e.queue.Load() }

// objectLogger returns the logger for an object.
func (e *Engine) objectLogger(key object.Key) logr.Logger { return e.loggerOf(key, unseen) }

// loggerOf returns the logger for an object whose last version is known, or nil.
func (e *Engine) loggerOf(key object.Key, body func() *object.Body) logr.Logger {
	return e.Logger.WithValues("object", objectRef{e, key, body}, "resource", key.Resource)
}

func unseen() *object.Body { return nil }

// reporter returns a reporter for an object, without one-time reports.
func (e *Engine) reporter(key object.Key) report.Reporter { return e.reporterOf(key, unseen, nil) }

// reporterOf returns a reporter for an object whose last version is known, or nil. The set limits repeated reports;
// nil disables one-time reports.
func (e *Engine) reporterOf(key object.Key, body func() *object.Body, once *reportonce.Set) report.Reporter {
	var ids map[string]string
	if r := e.resources.get(key.Resource); r != nil {
		ids = r.reportedIDs
	}
	return report.Reporter{
		Log: e.loggerOf(key, body), Poster: e.Poster, Posting: e.Settings.Posting, IDs: ids,
		Object: once, Shared: &e.reported,
	}
}

// callContext returns the context and the logger for one call of a handler.
func (e *Engine) callContext(ctx context.Context, r *resource, key object.Key, body func() *object.Body, d *handler.Declaration) (context.Context, logr.Logger) {
	call := CallContext{Body: body, Resource: r.Resource.Resource}
	call.Logger = e.eventLogger.Logger(e.loggerOf(key, body), body, "handler", handler.ReportedID(d))
	return e.Context(ctx, call), call.Logger
}

// isBuiltIn reports whether a storage has no code of users.
func isBuiltIn(of any) bool {
	switch of.(type) {
	case storage.AnnotationsDiffBase, storage.StatusDiffBase, storage.AnnotationsProgress, storage.StatusProgress, storage.SmartProgress:
		return true
	default:
		return false
	}
}
