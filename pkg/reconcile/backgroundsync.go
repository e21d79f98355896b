package reconcile

import (
	"encoding/json"
	"hash/fnv"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// selectBackground finds the daemons and timers that the object should have, and
// whether the finalizer is needed for them: as long as the end of a daemon is awaited.
func (p *pass) selectBackground(c *cycle, body *object.Body) {
	if len(p.resource.background) == 0 {
		return
	}
	if !c.deleting {
		whole := &handler.Cause{CallContext: c.CallContext, New: body.Raw()}
		c.background = p.resource.background.Where(func(d *handler.Declaration) bool { return d.InScope(whole) })
	}
	if len(c.background) == 0 && p.object.background == nil {
		return
	}
	b := p.backgroundOf()
	c.needsFinalizer = c.needsFinalizer || b.areDaemonsRunning() || slices.ContainsFunc(c.background, b.group.NeedsFinalizer)
}

// backgroundOf returns the background of the object. Objects without one cost nothing.
func (p *pass) backgroundOf() *background {
	s := p.object
	if s.background == nil {
		body := p.session.Body()
		b := &background{engine: p.engine, resource: p.resource, key: p.key, uid: body.UID(), object: s, seen: body.Snapshot().Packed()}
		b.group = p.engine.supervisor.NewGroup(b)
		s.background = b
	}
	return s.background
}

// stopBackgroundOfDeleted stops the daemons and timers of an object that is being
// deleted.
func (p *pass) stopBackgroundOfDeleted() {
	if b := p.object.background; b != nil && p.session.Body().Deleting() {
		b.requeueRequested.Store(false)
		b.group.Stop(handler.StopDeleted)
	}
}

// syncBackground starts and stops daemons and timers as the object is now.
func (p *pass) syncBackground(c *cycle) error {
	b := p.object.background
	if b == nil || c.deleting {
		return nil
	}
	b.requeueRequested.Store(false)
	changed, err := p.hasEssenceChanged(b)
	b.group.Sync(c.background, changed)
	return err
}

// hasEssenceChanged reports whether the essence has changed since the last pass: only
// that resets the idle time of timers, and only they need to know.
func (p *pass) hasEssenceChanged(b *background) (bool, error) {
	if !p.resource.idling {
		return false, nil
	}
	text, err := json.Marshal(p.engine.records.Essence(p.session.Body(), p.resource.fields))
	digest := fnv.New64a()
	_, _ = digest.Write(text) // never fails
	before := b.essence
	b.essence = digest.Sum64()
	return before != b.essence, err
}
