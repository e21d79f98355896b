package reconcile

import (
	"encoding/json"
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// lastChanges has the last changes of the objects with handlers that wait until their object is idle. It is
// empty while none waits. A change is seen, and not what happened before this process began.
type lastChanges struct {
	mu    sync.Mutex
	known map[object.Key]lastChange
}

type lastChange struct {
	uid     types.UID
	essence uint64 // its digest
	at      time.Time
}

// see compares an essence with that of the last call, and returns when it has changed last.
func (l *lastChanges) see(key object.Key, uid types.UID, essence uint64) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.known[key]
	if known && before.uid == uid && before.essence == essence {
		return before.at
	}
	if l.known == nil {
		l.known = map[object.Key]lastChange{}
	}
	now := time.Now()
	l.known[key] = lastChange{uid, essence, now}
	return now
}

func (l *lastChanges) forget(key object.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, key)
}

// awaitIdle postpones the handlers of a creation or an update that must not be called before the object has not
// changed for some time. What changes meanwhile becomes a part of their difference, because the cycle has not ended.
// Functions of children are also called when an object is resumed or deleted, and do not wait then.
func (p *pass) awaitIdle(c *cycle) error {
	if !p.resource.awaitsIdle || !c.Reason.IsChange() {
		return nil
	}
	var changed time.Time
	for _, d := range c.Handlers {
		state := c.Cycle.Progress.Load(d.ID)
		if d.Idle == 0 || state.Finished() {
			continue
		}
		if changed.IsZero() {
			digest, err := digestOf(c.New)
			if err != nil {
				return err
			}
			changed = p.engine.objects.changes.see(p.key, p.object.writes.UID(), digest)
		}
		state.Postpone(changed.Add(d.Idle))
	}
	if changed.IsZero() {
		p.engine.objects.changes.forget(p.key)
	}
	return nil
}

// digestOf returns a digest of an essence.
func digestOf(essence object.Essence) (uint64, error) {
	text, err := json.Marshal(essence)
	digest := fnv.New64a()
	_, _ = digest.Write(text) // never fails
	return digest.Sum64(), err
}
