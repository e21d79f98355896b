package triggers

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Set has the triggers of all objects. The zero value is ready to use. It is safe for
// concurrent use, with one pass at a time per object.
type Set struct {
	mu      sync.Mutex
	objects map[object.Key]*triggered
	// ahead are the handlers to call once more: see Repeat.
	ahead map[object.Key]map[string]struct{}
}

// triggered is an object with handlers that are triggered. Passes own it, except the triggers.
type triggered struct {
	uid      types.UID
	handlers []*entry // in the order of their declarations
	// stored are the handlers that may have a record on the object.
	stored map[string]struct{}
}

// entry is one handler of an object.
type entry struct {
	id      string
	trigger Trigger
	// records are those of the calls that were made and have not ended, by their ids.
	records map[string]*storage.Record
}

// of returns an object, or nil if it has no triggers.
func (s *Set) of(key object.Key) *triggered {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[key]
}

func (s *Set) put(key object.Key, t *triggered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects == nil {
		s.objects = map[object.Key]*triggered{}
	}
	s.objects[key] = t
}

// Object contains what Sync must know about an object.
type Object struct {
	Key object.Key
	UID types.UID
	// Handlers are those that match the object now, and Declared all that could.
	Handlers, Declared registry.Handlers
	// Record returns the stored record of a handler, or nil. It is called when the
	// object is new.
	Record func(id string) (*storage.Record, error)
	// IsAhead reports whether a call would be ahead of the changes of the object: see Repeat.
	IsAhead func(handler string) bool
	// New returns the trigger of a handler. If failed is set, an earlier process has
	// failed to call it, so the trigger is pending.
	New func(d *handler.Declaration, failed bool) Trigger
}

// Sync makes the triggers of the handlers that match an object, and stops all others.
func (s *Set) Sync(o Object) error {
	known := s.of(o.Key)
	if known != nil && known.uid != o.UID {
		s.Forget(o.Key)
		known = nil
	}
	records := map[string]*storage.Record{}
	if known == nil {
		known = &triggered{uid: o.UID}
		for _, d := range o.Declared {
			record, err := o.Record(d.ID)
			if err != nil {
				return err
			}
			if record != nil {
				records[d.ID] = record
				known.markStored(d.ID, true)
			}
		}
		s.put(o.Key, known)
	}
	known.stopExcept(o.Handlers)
	for _, d := range o.Handlers {
		if known.entry(d.ID) == nil {
			made := &entry{id: d.ID}
			record := records[d.ID]
			failed := record != nil && !record.Finished()
			if failed {
				made.records = map[string]*storage.Record{d.ID: record}
			}
			made.trigger = o.New(d, failed)
			known.handlers = append(slices.Clip(known.handlers), made)
		}
		if s.isAhead(o.Key, d.ID) && !o.IsAhead(d.ID) {
			s.catchUp(o.Key, d.ID)
			known.entry(d.ID).trigger.End(d.ID, true)
		}
	}
	return nil
}

// Repeat marks a handler that is called for a state of an object before the handlers of changes have seen it. They may
// never see it, because the change can be taken back. So the handler is called once more when it is not ahead of them.
func (s *Set) Repeat(key object.Key, handler string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ahead == nil {
		s.ahead = map[object.Key]map[string]struct{}{}
	}
	if s.ahead[key] == nil {
		s.ahead[key] = map[string]struct{}{}
	}
	s.ahead[key][handler] = struct{}{}
}

func (s *Set) isAhead(key object.Key, handler string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.ahead[key][handler]
	return is
}

func (s *Set) catchUp(key object.Key, handler string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ahead[key], handler)
	if len(s.ahead[key]) == 0 {
		delete(s.ahead, key)
	}
}

func (t *triggered) stopExcept(wanted registry.Handlers) {
	t.handlers = slices.DeleteFunc(t.handlers, func(e *entry) bool {
		isWanted := slices.ContainsFunc(wanted, func(d *handler.Declaration) bool { return d.ID == e.id })
		if !isWanted {
			e.trigger.Stop()
		}
		return !isWanted
	})
}

func (t *triggered) entry(id string) *entry {
	i := slices.IndexFunc(t.handlers, func(e *entry) bool { return e.id == id })
	if i < 0 {
		return nil
	}
	return t.handlers[i]
}

func (t *triggered) markStored(id string, isStored bool) {
	switch {
	case !isStored:
		delete(t.stored, id)
	case t.stored == nil:
		t.stored = map[string]struct{}{id: {}}
	default:
		t.stored[id] = struct{}{}
	}
}

// IsPending reports whether an object has calls: now, or after a delay.
func (s *Set) IsPending(key object.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.objects[key]
	return t != nil && (len(s.ahead[key]) > 0 || slices.ContainsFunc(t.handlers, func(e *entry) bool { return e.trigger.IsPending() }))
}

// Forget stops the triggers of an object that is gone or no longer watched.
func (s *Set) Forget(key object.Key) {
	s.mu.Lock()
	known := s.objects[key]
	delete(s.objects, key)
	delete(s.ahead, key)
	s.mu.Unlock()
	if known != nil {
		known.stopExcept(nil)
	}
}

// Calls are the pending calls of one object in one pass.
type Calls struct {
	// Handlers are the handlers that are called.
	Handlers registry.Handlers
	// Progress has the attempts. All handlers are included in it.
	Progress *call.Progress

	of     *triggered
	owners map[string]*entry
	begun  map[string]struct{}
}

// Calls returns the pending calls of an object, without those of handlers that the function
// excludes: they stay pending. It returns nil if the object has neither calls nor records.
func (s *Set) Calls(key object.Key, isExcluded func(handler string) bool) *Calls {
	t := s.of(key)
	if t == nil {
		return nil
	}
	c := &Calls{of: t, owners: map[string]*entry{}, begun: map[string]struct{}{}}
	c.Progress = call.NewProgress(func(id string) *storage.Record {
		owner := c.owners[id]
		if owner == nil {
			return nil
		}
		return owner.records[id]
	})
	for _, e := range t.handlers {
		isPending := e.trigger.IsPending()
		if isPending && isExcluded(e.id) {
			continue
		}
		var calls []*handler.Declaration
		if isPending {
			calls = e.trigger.Calls()
		}
		for _, d := range calls {
			c.owners[d.ID] = e
			c.Handlers = append(c.Handlers, d)
			c.Progress.Include(d.ID, cause.Reason(d.Kind), true)
		}
		// The records of the other calls are not needed anymore.
		maps.DeleteFunc(e.records, func(id string, _ *storage.Record) bool { return c.owners[id] == nil })
	}
	if len(c.Handlers)+len(t.stored) == 0 {
		return nil
	}
	return c
}

// Begin marks a call as begun.
func (c *Calls) Begin(id string) {
	c.begun[id] = struct{}{}
	c.owners[id].trigger.Begin(id)
}

// Records returns the records that the object must have, by the ids of the handlers. Nil means
// that it must have none.
func (c *Calls) Records() map[string]*storage.Record {
	wanted := map[string]*storage.Record{}
	for id := range c.of.stored {
		wanted[id] = nil
	}
	for _, e := range c.of.handlers {
		worst := c.worst(e)
		if worst != nil {
			wanted[e.id] = worst
		}
	}
	return wanted
}

// worst returns the record of the failing call of a handler with the most attempts, the earliest
// of several, or nil if none fails.
func (c *Calls) worst(e *entry) *storage.Record {
	records := map[string]*storage.Record{}
	maps.Copy(records, e.records)
	for id, owner := range c.owners {
		if owner != e {
			continue
		}
		state := c.Progress.Load(id)
		switch {
		case state.Finished():
			delete(records, id)
		case state.Retries > 0:
			records[id] = &state.Record
		}
	}
	if len(records) == 0 {
		return nil
	}
	return slices.MaxFunc(slices.Collect(maps.Values(records)), func(a, b *storage.Record) int {
		return cmp.Or(cmp.Compare(a.Retries, b.Retries), b.Started.Compare(a.Started))
	})
}

// End takes over the outcomes of the calls, after the records were written.
func (c *Calls) End() {
	for id, record := range c.Records() {
		c.of.markStored(id, record != nil)
	}
	for id := range c.begun {
		e := c.owners[id]
		state := c.Progress.Load(id)
		switch {
		case state.Finished():
			delete(e.records, id)
		case state.Retries > 0:
			if e.records == nil {
				e.records = map[string]*storage.Record{}
			}
			record := state.Record
			e.records[id] = &record
		}
		e.trigger.End(id, !state.Finished())
	}
}
