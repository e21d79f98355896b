// Package erasing lets storages erase what they keep of objects that are gone.
//
// The watch shows the end of an object, possibly while a pass over it is running, which can still store something. So
// an erasure waits until the next turn of the object's key, begins there, and goes on in its own goroutine: another
// object of the same name does not wait for it. A failed attempt is repeated. An erasure that a pause or the end of the
// operator interrupts waits again, for the next workers.
package erasing

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Config contains everything that Erasures need.
type Config struct {
	Storages []storage.Eraser
	// Permits limit how many storages are called at the same time, except for those that take long.
	Permits *call.Permits
	// Delays are the pauses after failures.
	Delays []time.Duration
	// Exists reports whether the watch has an object with this uid. A restored cluster can have it again.
	Exists func(key object.Key, uid types.UID) bool
	// Enqueue requests a turn of the key.
	Enqueue func(key object.Key)
	// Log returns the logger of an object that is gone.
	Log func(key object.Key, last *object.Body) logr.Logger
}

// Erasures are those of one engine. Nil has no storages, and does nothing. They are safe for concurrent use.
type Erasures struct {
	Config

	mu sync.Mutex
	// waiting are the last versions of the objects whose erasure has not begun.
	waiting map[object.Key][]*object.Snapshot
	// calls are the objects for which storages are being called.
	calls map[types.UID]erasure
	// running counts the goroutines of the current workers. The next workers have another one.
	running *sync.WaitGroup
}

// erasure is that of one object.
type erasure struct {
	key  object.Key
	last *object.Snapshot
}

// New returns the erasures of the storages, or nil if there are none.
func New(config Config) *Erasures {
	if len(config.Storages) == 0 {
		return nil
	}
	return &Erasures{Config: config, waiting: map[object.Key][]*object.Snapshot{}, calls: map[types.UID]erasure{}, running: &sync.WaitGroup{}}
}

// Add adds an object that is gone. The erasure begins in the next turn of its key.
func (e *Erasures) Add(key object.Key, last *object.Snapshot) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting[key] = append(e.waiting[key], last)
}

// Keys returns the keys with erasures that wait for a turn.
func (e *Erasures) Keys() []object.Key {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	keys := make([]object.Key, 0, len(e.waiting))
	for key := range e.waiting {
		keys = append(keys, key)
	}
	return keys
}

// Begin begins the erasures of a key, in its turn: no pass is running. Failures are repeated until the workers stop. The
// context is that of the calls.
func (e *Erasures) Begin(ctx context.Context, stopping <-chan struct{}, key object.Key) {
	if e != nil {
		e.begin(ctx, stopping, stopping, key)
	}
}

// begin begins the erasures of a key. They wait for permits until leaving is closed, and repeat failures until stopping is.
func (e *Erasures) begin(ctx context.Context, leaving, stopping <-chan struct{}, key object.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, last := range e.waiting[key] {
		one := erasure{key, last}
		running := e.running
		running.Go(func() {
			if !e.run(ctx, leaving, stopping, one) {
				e.putBack(one, running)
			}
		})
	}
	delete(e.waiting, key)
}

// putBack lets an erasure wait for the next workers. They can be there already, if a call has outlasted a pause.
func (e *Erasures) putBack(one erasure, running *sync.WaitGroup) {
	e.Add(one.key, one.last)
	e.mu.Lock()
	outlasted := e.running != running
	e.mu.Unlock()
	if outlasted {
		e.Enqueue(one.key)
	}
}

// run makes attempts until one succeeds, and returns true, or until the workers stop.
func (e *Erasures) run(ctx context.Context, leaving, stopping <-chan struct{}, one erasure) bool {
	for failures := 0; ; failures++ {
		err := e.try(ctx, leaving, one)
		if err == nil {
			return true
		}
		var delay time.Duration
		if len(e.Delays) > 0 {
			delay = e.Delays[min(failures, len(e.Delays)-1)]
		}
		if !errors.Is(err, errStopping) {
			e.log(one).Error(err, "A storage has not erased what it keeps of the object, which is gone; this will be retried.", "failures", failures+1, "delay", delay.String())
		}
		select {
		case <-time.After(delay):
		case <-stopping:
			return false
		}
	}
}

var errStopping = errors.New("the workers are stopping")

// try makes one attempt.
func (e *Erasures) try(ctx context.Context, leaving <-chan struct{}, one erasure) error {
	body := one.last.Body()
	if e.Exists(one.key, body.UID()) {
		return nil
	}
	if !e.Permits.Begin(one.key.Resource, leaving) {
		return errStopping
	}
	defer e.Permits.Release()
	e.setCalling(one, true)
	defer e.setCalling(one, false)
	ctx = e.Permits.With(ctx, one.key.Resource, func() {})
	var err error
	call.Lend(ctx, func() {
		err = handler.WithRecover(func() error { return storage.EraseAll(ctx, body, e.Storages) })
	})
	return handler.Readable(err)
}

func (e *Erasures) setCalling(one erasure, calling bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if calling {
		e.calls[one.last.GetUID()] = one
	} else {
		delete(e.calls, one.last.GetUID())
	}
}

func (e *Erasures) log(one erasure) logr.Logger { return e.Log(one.key, one.last.Body()) }

// patience is how long calls may take to return after their context has ended.
const patience = time.Second

// Finish waits until the erasures of the workers have ended, which have no more passes. It first begins those that
// wait, except for keys that are not free, and makes one attempt for each. It does not wait for calls that ignore the
// end of their context.
func (e *Erasures) Finish(ctx context.Context, isFree func(key object.Key) bool) {
	if e == nil {
		return
	}
	stopped := make(chan struct{})
	close(stopped)
	for _, key := range e.Keys() {
		if isFree(key) {
			e.begin(ctx, ctx.Done(), stopped, key)
		}
	}
	e.mu.Lock()
	running := e.running
	e.running = &sync.WaitGroup{}
	e.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return
	case <-time.After(patience):
	}
	e.mu.Lock()
	left := slices.Collect(maps.Values(e.calls))
	e.mu.Unlock()
	for _, one := range left {
		e.log(one).Error(nil, "A storage has not returned although it was canceled. It was erasing what it keeps of the object, which is gone.")
	}
}

// Stop logs which erasures have not succeeded, because the operator stops.
func (e *Erasures) Stop() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, all := range e.waiting {
		for _, last := range all {
			e.log(erasure{key, last}).Error(nil, "The operator is stopping, and a storage still keeps its data about the object, which is gone.")
		}
	}
	clear(e.waiting)
}
