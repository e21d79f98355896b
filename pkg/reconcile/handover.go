package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// pauseState controls whether the operator works or is paused because another operator
// works. The zero value is not paused. It is safe for concurrent use.
type pauseState struct {
	mu      sync.Mutex
	paused  bool
	others  bool               // another operator has worked during the pause
	suspend context.CancelFunc // stops the current work; nil if there is none
	resumed chan struct{}      // closed when the pause ends; nil without a pause
}

// SetPaused pauses the operator because another one handles the objects, or resumes it. A
// pause is like a shutdown, except that the watches and the memory are kept: running
// handlers can finish within the grace period, daemons and timers are stopped, and the
// progress is persisted. After the pause, the operator continues with the latest state of
// each object.
//
// It is safe for concurrent use, and does not wait.
func (e *Engine) SetPaused(paused bool) {
	p := &e.pause
	p.mu.Lock()
	defer p.mu.Unlock()
	p.others = p.others || paused
	switch {
	case p.paused == paused:
	case paused:
		p.paused = true
		p.resumed = make(chan struct{})
		if p.suspend != nil {
			p.suspend()
		}
	default:
		p.paused = false
		close(p.resumed)
	}
}

func (p *pauseState) isPaused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused
}

// wait waits until the operator may work, and reports whether others have worked meanwhile.
// The context ends with the next pause. It is nil if the operator is stopped before.
func (p *pauseState) wait(ctx context.Context) (active context.Context, end context.CancelFunc, others bool) {
	for {
		p.mu.Lock()
		if !p.paused {
			active, p.suspend = context.WithCancel(ctx)
			end = p.suspend
			others = p.others
			p.others = false
			p.mu.Unlock()
			return active, end, others
		}
		resumed := p.resumed
		p.mu.Unlock()
		select {
		case <-resumed:
		case <-ctx.Done():
			return
		}
	}
}

// catchUp prepares a standby replica for work. Although it has watched all the time, its
// watch may be late or stuck, and may not have shown the last writes of its predecessor.
// So catchUp lists the versions of the objects without their content. An object that the
// watch has shown in an older version, or not at all, is handled only after the listed
// version is seen or read, as after the operator's own writes.
//
// It retries until it succeeds or the operator stops, because nothing can be handled
// without the API server.
func (e *Engine) catchUp(ctx context.Context) bool {
	return nil == wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := e.compareVersions(ctx)
		if err != nil {
			e.Logger.Error(err, "The objects cannot be compared with the cluster yet; this will be retried.")
		}
		return err == nil, nil
	})
}

func (e *Engine) compareVersions(ctx context.Context) error {
	for _, r := range e.resources.all() {
		if r.isObservedOnly() {
			continue
		}
		versions, err := r.Versions(ctx)
		if err != nil {
			return err
		}
		for _, v := range versions {
			if e.isSharded() && e.tenures.of(v.Key.Namespace, v.UID()) == nil {
				continue
			}
			catchUp := func(s *objectState) { s.catchUp(v.Seen, v.Now) }
			e.whenFree(v.Key, catchUp, func(a *abandoned) { a.catchUp = catchUp })
		}
	}
	return nil
}

// catchUp compares the version of the watch with the current version.
func (s *objectState) catchUp(seen *object.Snapshot, now kube.Version) {
	if seen == nil { // the object is new
		s.writes.NotOlderThan(now.ResourceVersion)
		return
	}
	s.resetFor(seen.GetUID())
	if now.UID == "" { // the watch will show that, too
		s.writes.SeenMissing()
		return
	}
	s.writes.SeenGone(now.UID != seen.GetUID()) // the watch will show its deletion
	s.writes.NotOlderThan(now.ResourceVersion)
}
