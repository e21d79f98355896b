package watch

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Consumer receives the objects of the watches.
type Consumer interface {
	// NeedsPatch reports whether the handlers of a resource write to its objects.
	NeedsPatch(found discovery.SelectedResource) bool
	// SetUp prepares for a new resource. The error explains why its objects cannot be
	// handled. It makes no request after the context is done.
	SetUp(ctx context.Context, found discovery.SelectedResource) (*Resource, error)
	// Observe handles an event, in order for each object. It must return quickly.
	Observe(ctx context.Context, r *Resource, event object.WatchEvent)
	// BeginAnew is called before Observe shows a version of an object that belongs to another history
	// of the cluster than what was known of the object. Observe does not follow if only the history
	// is another one.
	BeginAnew(r *Resource, key object.Key)
	// Forget handles the end of a stream, or of all streams of a resource if the
	// namespace is empty. It returns when all work on the objects has ended, so that
	// the resource can be watched in another version.
	Forget(ctx context.Context, r *Resource, key object.StreamKey)
}

// Config contains everything that a Watcher needs.
type Config struct {
	Settings settings.Settings
	Logger   logr.Logger
	// REST and HTTP connect to the cluster.
	REST *rest.Config
	HTTP *http.Client
	// Source returns the resources of the cluster.
	Source discovery.Source
	// Selectors are the selectors of the handlers. Handlers is their number, for the log.
	Selectors []selector.Selector
	Handlers  int
	Consumer  Consumer
	Metrics   *metrics.Metrics // nil disables metrics
	// Discovered is called with the resources of the cluster, and Scoped with the
	// namespaces that are watched separately, after every discovery. Both can be nil.
	Discovered func(present discovery.Snapshot)
	Scoped     func(namespaces []string)
}

// Watcher starts and stops the streams of one operator. Run is called once.
type Watcher struct {
	Config

	indexed barrier
	begun   atomic.Bool   // the streams were started
	listed  chan struct{} // closed when all resources are known, and listed unless that is refused

	rediscover signal // the cluster may serve other resources now
	reapply    signal // other streams may be needed now
	problems   *problems

	// Except for stopping, only the goroutine of Run uses the fields below.
	running  sync.WaitGroup
	tracker  discovery.Tracker
	schedule discovery.ScanSchedule
	// definitions and namespaces are nil while they are not watched.
	definitions, namespaces *discovery.NameInformer
	complete                bool // the last discovery has found everything
	wanted                  []discovery.SelectedResource
	active                  map[string]*Resource
	scope                   []string // the namespaces currently in scope
	stopping                stopping
}

// New returns a Watcher that is not running yet.
func New(config Config) *Watcher {
	return &Watcher{
		Config: config, listed: make(chan struct{}),
		rediscover: make(signal, 1), reapply: make(signal, 1),
		problems: newProblems(config.Logger, config.Settings.Scanning.Disabled),
		schedule: discovery.ScanSchedule{MaxInterval: config.Settings.Scanning.Interval},
		active:   map[string]*Resource{},
	}
}

// Listed returns a channel that is closed when all initial objects are known that may be listed.
func (w *Watcher) Listed() <-chan struct{} { return w.listed }

// HasBegun reports whether the streams were started.
func (w *Watcher) HasBegun() bool { return w.begun.Load() }

// WaitForIndices waits while a stream that was started late fills indices. It returns false
// if the other channel is closed first.
func (w *Watcher) WaitForIndices(stopping <-chan struct{}) bool { return w.indexed.wait(stopping) }

// Run watches all selected resources and namespaces, as they appear and disappear, until the
// context is done.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := w.begin(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	streams := w.streams()
	resources := slices.Sorted(maps.Keys(w.active))
	w.running.Go(func() { w.followChanges(ctx) })
	if !w.waitListed(ctx, streams) {
		return nil // stopped meanwhile
	}
	if w.Handlers == 0 {
		w.Logger.Info("No handler is declared: the operator does nothing. It uses the handlers in kopf.DefaultRegistry, unless Options.Registry is set.")
	}
	w.Logger.Info("The operator is running.", "resources", resources, "namespaces", w.Settings.Scope.Namespaces, "handlers", w.Handlers)
	close(w.listed)
	<-ctx.Done()
	w.Logger.Info("The operator is stopping.")
	return nil
}

// streams returns all started streams, with the names of their resources.
func (w *Watcher) streams() map[*Stream]string {
	all := map[*Stream]string{}
	for _, r := range w.active {
		for _, s := range r.streams.all() {
			all[s] = r.Name
		}
	}
	return all
}

// listedSoon is the time after which the operator says what it waits for at the start.
const listedSoon = 10 * time.Second

// waitListed waits for the initial lists, except those of streams that are stopped or refused: one
// resource or namespace without a role must not hold up all others.
func (w *Watcher) waitListed(ctx context.Context, streams map[*Stream]string) bool {
	soon := time.After(listedSoon)
	for s, resource := range streams {
		for waits := true; waits; {
			waits = false
			select {
			case <-s.Listed():
			case <-s.stopped:
			case <-s.refused:
			case <-ctx.Done():
				return false
			case <-soon:
				w.Logger.Info("No handler is called yet: the operator waits for the initial lists of objects.", "resource", resource, "namespace", s.namespace)
				waits = true
			}
		}
	}
	return ctx.Err() == nil
}

// isListed reports whether handlers can be called.
func (w *Watcher) isListed() bool {
	select {
	case <-w.listed:
		return true
	default:
		return false
	}
}
