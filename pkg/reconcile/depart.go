package reconcile

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
)

// departurePolling is how often the handlers of a resource that is not served any
// longer are looked at, until the last one has returned.
const departurePolling = 200 * time.Millisecond

// vacate forgets everything of objects that are not watched any longer: nothing
// tells when they change or go. The indices lose them at once. The rest is what
// passes do, so that none is in the way of one that is running; or nobody works,
// and there are no passes.
func (e *Engine) vacate(s *served, where object.StreamKey) {
	if s.indexer != nil {
		s.indexer.RemoveFunc(func(owner object.Key) bool { return where.Has(owner) })
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, key := range e.memories.in(where) {
		if e.queue == nil {
			e.memories.leave(key, handler.StopMismatch)
			continue
		}
		e.queue.Add(key)
	}
	if e.queue == nil {
		e.lines.drop(where)
	}
}

// vacated waits until the last handler of a resource has returned: its passes,
// and its daemons. Objects that are served in another version now must not be
// handled twice at the same time.
func (e *Engine) vacated(ctx context.Context, s *served) {
	where := object.StreamKey{Resource: s.name}
	_ = wait.PollUntilContextCancel(ctx, departurePolling, true, func(context.Context) (bool, error) {
		return !s.departing.any() && len(e.memories.in(where)) == 0, nil
	})
}

// part ends all dealings with an object that is gone, or not watched any longer.
func (p *pass) part() {
	reason := handler.StopDeleted
	if p.streams.of(p.key.Namespace) == nil {
		reason = handler.StopMismatch
	}
	if b := p.memories.leave(p.key, reason); b != nil && reason == handler.StopMismatch {
		p.departing.add(b.group)
	}
}

// in are the objects of a stream that are remembered.
func (m *memories) in(where object.StreamKey) []object.Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []object.Key
	for key := range m.objects {
		if where.Has(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// leave forgets an object, and stops its daemons and timers.
func (m *memories) leave(key object.Key, reason handler.StopReason) *background {
	m.mu.Lock()
	known := m.objects[key]
	delete(m.objects, key)
	m.mu.Unlock()
	if known == nil {
		return nil
	}
	known.background.end(reason)
	return known.background
}

// drop forgets the events of a stream.
func (l *lines) drop(where object.StreamKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.waiting {
		if where.Has(key) {
			delete(l.waiting, key)
		}
	}
}

// groups are the daemons of objects that are not watched any longer.
type groups struct {
	mu  sync.Mutex
	all []*daemons.Group
}

func (g *groups) add(group *daemons.Group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, group)
}

// any tells whether one of them has not stopped yet.
func (g *groups) any() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = slices.DeleteFunc(g.all, func(group *daemons.Group) bool { return !group.HasRunningDaemons() })
	return len(g.all) > 0
}
