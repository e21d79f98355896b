package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// step continues a pass until the next call of a handler, which it returns. If there is none, the pass has ended,
// with an error, or with the request for another one. After a step, the pass has its permit if it has ended.
type step func() (following *call.Call, next nextPass, err error)

// detach continues a pass in its own goroutine, up to its first call. The object stays locked.
// After the shutdown of the queue, the goroutine still writes what its handlers have done; the
// request for another pass has no effect then.
//
// Thousands of handlers can wait, so nothing of the engine is on their stacks.
func (w *workers) detach(p *pass, first step) {
	e := w.engine
	e.mu.Lock()
	e.detached[p.key] = p
	e.mu.Unlock()
	e.currentQueue().Detach(p.key)
	w.detached.Go(func() { w.makeCalls(p, first) })
}

// makeCalls makes the calls of a detached pass, and ends it. A handler that ends the goroutine
// (runtime.Goexit) has failed, and the pass continues in another one.
func (w *workers) makeCalls(p *pass, work step) {
	var running *call.Call // nil while the pass itself works
	ended := false
	defer func() {
		switch {
		case ended:
		case running != nil:
			last := running
			w.detached.Go(func() { w.makeCalls(p, func() (*call.Call, nextPass, error) { return p.resume(last) }) })
		default: // it was a filter or a storage
			w.detached.Go(func() { w.attach(p, nextPass{}, handler.ErrExited) })
		}
	}()
	for {
		following, next, err := w.work(p, work)
		if following == nil {
			ended = true
			w.attach(p, next, err)
			return
		}
		running = following
		running.Make() // without a permit
		running = nil
		work = func() (*call.Call, nextPass, error) { return p.resume(following) }
	}
}

// work does a step of a pass. It warns if that takes long: filters and storages, which are the code of
// users, may never return.
func (w *workers) work(p *pass, do step) (following *call.Call, next nextPass, err error) {
	overdue := time.AfterFunc(overdueCall, func() {
		p.report.Log.Info("The object has been waiting for more than 10 minutes, because a filter, a storage, or a lifecycle does not return.")
	})
	defer overdue.Stop()
	return do()
}

// attach ends a pass that was detached, and gives back its permit: the queue hands out the object again.
func (w *workers) attach(p *pass, next nextPass, err error) {
	e := w.engine
	e.permits.Release()
	after := w.end(p, next, err).RequeueAfter
	e.mu.Lock()
	delete(e.detached, p.key)
	if a := e.abandoned[p.key]; a != nil {
		delete(e.abandoned, p.key)
		if a.catchUp != nil {
			a.catchUp(p.object)
		}
		if a.reopened {
			p.object.reopen()
			after = time.Nanosecond
		}
	}
	q := e.queue.Load()
	e.mu.Unlock()
	q.Release(p.key, after)
}

// abandoned is a detached pass that has outlasted a pause, because its handler ignores its
// context. The object stays locked until the pass ends; everything else goes on.
//
// Until then, the pass owns the state of the object. What the work after the pause must change
// in it waits here.
type abandoned struct {
	catchUp  func(s *objectState) // nil if the versions were not compared
	reopened bool
}

// abandonDelay is the time for calls to return after their contexts have ended.
const abandonDelay = time.Second

// waitForCalls waits until all detached passes have ended. A pause lets go of those that outlast
// the grace period; after it, others take the place of the workers.
func (w *workers) waitForCalls(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		w.detached.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return
	case <-w.writes.Done():
	}
	select {
	case <-ended:
		return
	case <-time.After(abandonDelay):
	}
	if ctx.Err() == nil {
		w.abandonCalls()
		return
	}
	e := w.engine
	e.mu.Lock()
	keys := slices.Collect(maps.Keys(e.detached))
	e.mu.Unlock()
	for _, key := range keys {
		e.logUnreturned(key,
			"The handler has not returned although it was canceled, because the operator is stopping. The next operator calls it again.",
			"A filter, a storage, or a lifecycle has not returned, and the operator is stopping. The next operator handles the object.")
	}
	<-ended // whoever stops the operator decides how long to wait
}

// abandonCalls lets go of the passes that have not ended, and says so for each of them.
func (w *workers) abandonCalls() {
	e := w.engine
	var fresh []object.Key
	e.mu.Lock()
	for key := range e.detached {
		if e.abandoned[key] == nil {
			e.abandoned[key] = &abandoned{}
			fresh = append(fresh, key)
		}
	}
	e.mu.Unlock()
	for _, key := range fresh {
		message := e.logUnreturned(key,
			"The handler has not returned although it was canceled for a pause. The object is not handled until the handler returns. The operator goes on with all others.",
			"A filter, a storage, or a lifecycle has not returned before the end of a pause. The object is not handled until it returns. The operator goes on with all others.")
		if r := e.resources.get(key.Resource); r != nil {
			if snapshot := r.Cached(key.NamespacedName); snapshot != nil {
				e.reporter(key).Event(snapshot.Body(), report.Warning, daemons.ReasonAbandoned, message)
			}
		}
	}
}

// isFree reports whether no pass over an object has been detached.
func (e *Engine) isFree(key object.Key) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.detached[key] == nil
}

// logUnreturned logs that a pass has not ended, and returns the message: one if handlers are running, another if not.
func (e *Engine) logUnreturned(key object.Key, handlers, other string) string {
	running, _ := e.slots.Of(key)
	message := handlers
	if len(running) == 0 {
		message = other
	}
	reporter := e.reporter(key)
	ids := make([]string, 0, len(running))
	for _, one := range running {
		ids = append(ids, reporter.ReportedID(one.ID))
	}
	e.objectLogger(key).Error(nil, message, "handlers", ids)
	return message
}

// whenFree changes the state of an object while no pass can run, or after the end of a pass that
// has outlasted the pause.
func (e *Engine) whenFree(key object.Key, change func(s *objectState), later func(a *abandoned)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a := e.abandoned[key]; a != nil {
		later(a)
		return
	}
	change(e.objects.of(key))
}
