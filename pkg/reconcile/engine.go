package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"k8s.io/client-go/util/workqueue"

	"github.com/kopf-go/kopf/pkg/kopf/memo"
	"github.com/kopf-go/kopf/pkg/kopf/registry"
	"github.com/kopf-go/kopf/pkg/kopf/settings"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
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
	// Context puts what handlers may ask the context for into it.
	Context func(ctx context.Context, about About) context.Context
}

// Engine serves the handlers of one operator. Watch and Work are its two halves:
// a standby replica only watches, the active one works too. Each of them can be
// called once.
type Engine struct {
	Config
	served   map[string]*served
	listing  atomic.Bool   // the watches have begun
	watching chan struct{} // closed when all resources are known and listed
	memories memories
	lines    *lines
	memos    *memo.Values // of the operator
	// supervisor has the daemons and timers of all objects.
	supervisor *daemons.Supervisor
	said       sync.Map // what is reported once an operator

	mu    sync.Mutex
	queue priorityqueue.PriorityQueue[Key]

	// working lives on when the operator is asked to stop, until the grace
	// period is over; stopping tells that it was asked to.
	working  context.Context
	stopping <-chan struct{}
}

// New makes an engine; it does nothing yet.
func New(config Config) *Engine {
	config.Settings = config.Settings.WithDefaults()
	config.Logger = lazily(config.Logger)
	return &Engine{
		Config:   config,
		watching: make(chan struct{}),
		lines:    newLines(config.Settings.Queueing.EventBacklog),
		memos:    memo.NewValues(nil),
		supervisor: daemons.New(daemons.Options{
			Backoff: config.Settings.Execution.Backoff, Polling: config.Settings.Background.CancellationPolling,
		}),
	}
}

// Ready is closed when all objects are known.
func (e *Engine) Ready() <-chan struct{} { return e.watching }

// Work handles the objects until the context is done. Then it takes no new work,
// lets running handlers finish within the grace period, cancels them after it,
// and returns when all of them have returned. Daemons and timers are stopped
// first, while there are workers who can write what comes of them.
func (e *Engine) Work(ctx context.Context) error {
	standby := e.listing.Load()
	select {
	case <-e.watching:
	case <-ctx.Done():
		return nil
	}
	// What was listed since is as fresh as can be.
	if standby && !e.caughtUp(ctx) {
		return nil
	}
	working, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	e.working, e.stopping = working, ctx.Done()
	grace := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(e.Settings.Execution.GracePeriod, func() { cancel(errors.New("the operator is stopping")) })
		context.AfterFunc(working, func() { timer.Stop() })
	})
	defer grace()

	unique := true // names need not be unique: several operators run in one process
	workers, err := controller.NewTypedUnmanaged("kopf", controller.TypedOptions[Key]{
		Reconciler:              e,
		MaxConcurrentReconciles: e.Settings.Execution.Workers,
		SkipNameValidation:      &unique,
		Logger:                  e.Logger.V(1),
		LogConstructor:          func(*Key) logr.Logger { return e.Logger.V(1) },
	})
	if err != nil {
		return fmt.Errorf("the workers cannot be set up: %w", err)
	}
	if err := workers.Watch(source.TypedFunc[Key](e.open)); err != nil {
		return fmt.Errorf("the queue cannot be set up: %w", err)
	}
	return e.serve(ctx, workers)
}

// serve lets the workers work until the context is done and the daemons and timers
// are stopped.
func (e *Engine) serve(ctx context.Context, workers manager.Runnable) error {
	serving, halt := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		defer halt()
		select {
		case <-ctx.Done():
		case <-serving.Done(): // the workers have failed
		}
		e.supervisor.Stop(e.working)
	}()
	err := workers.Start(serving)
	halt()
	<-stopped
	return err
}

// open begins to fill the queue: with everything that is there already, and
// from now on with what changes.
func (e *Engine) open(_ context.Context, queue workqueue.TypedRateLimitingInterface[Key]) error {
	e.lines.open()
	e.mu.Lock()
	e.queue = queue.(priorityqueue.PriorityQueue[Key]) //nolint:errcheck // controllers have no other queue
	e.mu.Unlock()
	for _, s := range e.served {
		if s.indexed() {
			continue
		}
		for _, snapshot := range s.all() {
			key := s.key(snapshot)
			// Whatever was there before this process began to work was handled
			// by somebody else, or by nobody.
			e.memories.of(key).initial.Store(true)
			e.queue.Add(key)
		}
	}
	return nil
}

// enqueue asks for a pass; it does nothing while nobody works.
func (e *Engine) enqueue(key Key) {
	e.mu.Lock()
	queue := e.queue
	e.mu.Unlock()
	if queue != nil {
		queue.Add(key)
	}
}
