package reconcile

import (
	"encoding/json"
	"hash/fnv"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
)

// enlist finds the daemons and timers that the object should have, and whether
// the finalizer is needed for them: as long as the end of a daemon is awaited. Those
// of an object that is being deleted are stopped.
func (p *pass) enlist(c *cycle) {
	if len(p.background) == 0 {
		return
	}
	if !c.deleting {
		whole := &handler.Cause{CallContext: c.CallContext, New: p.body.Raw()}
		c.companions = p.background.Where(func(d *handler.Declaration) bool { return d.InScope(whole) })
	}
	if len(c.companions) == 0 && p.memory.background == nil {
		return
	}
	b := p.company()
	if c.deleting {
		b.stirred.Store(false)
		b.group.Stop(handler.StopDeleted) // before it is asked whether anybody runs
	}
	c.wanted = c.wanted || b.group.HasRunningDaemons() || slices.ContainsFunc(c.companions, b.group.NeedsFinalizer)
}

// attend starts and stops daemons and timers as the object is now.
func (p *pass) attend(c *cycle) error {
	b := p.memory.background
	if b == nil || c.deleting {
		return nil
	}
	b.stirred.Store(false)
	changed, err := p.changedSince(b)
	b.group.Sync(c.companions, changed)
	return err
}

// awaited tells whether a daemon has yet to end before the object may go.
func (p *pass) awaited() bool {
	b := p.memory.background
	return b != nil && b.group.HasRunningDaemons()
}

// company is the background of the object at hand. Objects without one cost nothing.
func (p *pass) company() *background {
	m := p.memory
	if m.background == nil {
		b := &background{engine: p.Engine, served: p.served, key: p.key, uid: p.body.UID(), memory: m, seen: p.body.Snapshot().Packed()}
		b.group = p.supervisor.NewGroup(b)
		m.background = b
	}
	return m.background
}

// changedSince tells whether the essence has changed since the last pass: only
// that resets the idle time of timers, and only they need to know.
func (p *pass) changedSince(b *background) (bool, error) {
	if !p.idling {
		return false, nil
	}
	s := p.Settings.Persistence
	text, err := json.Marshal(s.Progress.Clear(s.DiffBase.Build(p.body, p.fields)))
	digest := fnv.New64a()
	_, _ = digest.Write(text) // never fails
	before := b.essence
	b.essence = digest.Sum64()
	return before != b.essence, err
}

// collect takes what daemons and timers want to be written.
func (p *pass) collect() {
	if b := p.memory.background; b != nil {
		p.memory.unsent = append(p.memory.unsent, b.take()...)
	}
}

// acknowledge tells them what is written.
func (p *pass) acknowledge() {
	if b := p.memory.background; b != nil {
		b.settle(p.memory.unsent)
	}
}

// stirred tells whether one of them has asked for this pass.
func (p *pass) stirred() bool {
	b := p.memory.background
	return b != nil && b.stirred.Load()
}

// memos are what handlers keep in memory of the object at hand.
func (p *pass) memos() *memo.Values { return p.memory.memos(p.body.UID(), p.Engine.Memos) }
