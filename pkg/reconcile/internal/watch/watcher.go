package watch

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Consumer is told what the watches show.
type Consumer interface {
	// SetUp prepares for a resource that was found. The error says why its objects
	// cannot be handled.
	SetUp(found discovery.SelectedResource) (*Resource, error)
	// Observe is told an event, in order for each object. It must be quick.
	Observe(ctx context.Context, r *Resource, event object.WatchEvent)
	// Forget is told that a stream has ended, or all streams of a resource if the
	// namespace is empty. It returns when nothing is done with the objects anymore,
	// so that the resource can be served in another version.
	Forget(ctx context.Context, r *Resource, key object.StreamKey)
}

// Config is what a Watcher needs.
type Config struct {
	Settings settings.Settings
	Logger   logr.Logger
	// REST and HTTP reach the cluster.
	REST *rest.Config
	HTTP *http.Client
	// Source tells which resources the cluster serves.
	Source discovery.Source
	// Selectors are those of the handlers; Handlers is how many there are, for the log.
	Selectors []selector.Selector
	Handlers  int
	Consumer  Consumer
	Metrics   *metrics.Metrics // nil: no metrics
	// Discovered and Scoped are told what the cluster serves, and which namespaces
	// are watched each on its own, whenever that was looked at; nil: not told.
	Discovered func(present discovery.Snapshot)
	Scoped     func(namespaces []string)
}

// Watcher starts and stops the streams of one operator. Run is called once.
type Watcher struct {
	Config

	indexed barrier
	begun   atomic.Bool   // the streams have been started
	listed  chan struct{} // closed when all resources are known and listed

	rediscover signal // the cluster may serve other resources now
	reapply    signal // other streams may be needed now
	problems   *problems

	// All below is for the goroutine of Run, but for stopping.
	running  sync.WaitGroup
	tracker  discovery.Tracker
	schedule discovery.ScanSchedule
	// definitions and namespaces are nil while they are not watched.
	definitions, namespaces *discovery.NameInformer
	complete                bool // the last discovery has found everything
	wanted                  []discovery.SelectedResource
	active                  map[string]*Resource
	scope                   []string // the namespaces that are in the scope now
	stopping                stopping
}

// New makes a Watcher; it does nothing yet.
func New(config Config) *Watcher {
	return &Watcher{
		Config: config, listed: make(chan struct{}),
		rediscover: make(signal, 1), reapply: make(signal, 1),
		problems: newProblems(config.Logger, config.Settings.Scanning.Disabled),
		schedule: discovery.ScanSchedule{MaxInterval: config.Settings.Scanning.Interval},
		active:   map[string]*Resource{},
	}
}

// Listed is closed when all objects are known that were there at the beginning.
func (w *Watcher) Listed() <-chan struct{} { return w.listed }

// HasBegun reports whether the streams have been started.
func (w *Watcher) HasBegun() bool { return w.begun.Load() }

// WaitForIndices waits while indices are being filled from a stream that was started
// late; false if the other channel is closed before.
func (w *Watcher) WaitForIndices(stopping <-chan struct{}) bool { return w.indexed.wait(stopping) }

// Run watches until the context is done: all resources and namespaces that are there,
// from when they appear until they go.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := w.begin(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	streams, resources := w.streams(), slices.Sorted(maps.Keys(w.active))
	w.running.Go(func() { w.followChanges(ctx) })
	if !waitListed(ctx, streams) {
		return nil // stopped meanwhile
	}
	w.Logger.Info("The operator is running.", "resources", resources, "namespaces", w.Settings.Scope.Namespaces, "handlers", w.Handlers)
	close(w.listed)
	<-ctx.Done()
	w.Logger.Info("The operator is stopping.")
	return nil
}

// streams returns all that have been started.
func (w *Watcher) streams() (all []*Stream) {
	for _, r := range w.active {
		all = slices.AppendSeq(all, maps.Values(r.streams.all()))
	}
	return all
}

// waitListed waits for the initial lists. A stream that was stopped is not waited for.
func waitListed(ctx context.Context, streams []*Stream) bool {
	for _, s := range streams {
		select {
		case <-s.listed():
		case <-s.stopped:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// isListed reports whether handlers may be called already.
func (w *Watcher) isListed() bool {
	select {
	case <-w.listed:
		return true
	default:
		return false
	}
}
