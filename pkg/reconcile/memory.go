package reconcile

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// memory is what the process remembers of one object between passes. There is
// one for every object that is watched: every field must be worth its bytes.
// It belongs to the pass; only the line is shared with the watch.
type memory struct {
	// initial: the object was there before this process handled anything. The
	// watch sets it, the passes read it.
	initial atomic.Bool
	// remembered is what handlers keep in memory; nil: nobody has asked for it.
	// Indexing functions, daemons and timers ask beside the passes.
	remembered atomic.Pointer[remembered]
	recollection
}

// remembered are the memos of one object. An earlier object of the same name has
// its own, as long as anybody may ask for them: the watch is ahead of the event
// handlers, and the indexing functions are ahead of the passes.
type remembered struct {
	uid    types.UID
	values *memo.Values
	former *remembered
}

// memos are what handlers keep in memory of the object with this uid.
func (m *memory) memos(uid types.UID, operator *memo.Values) *memo.Values {
	for {
		newest := m.remembered.Load()
		for known := newest; known != nil; known = known.former {
			if known.uid == uid {
				return known.values
			}
		}
		made := &remembered{uid, memo.NewValues(operator), newest}
		if m.remembered.CompareAndSwap(newest, made) {
			return made.values
		}
	}
}

// outlive drops the memos of an object that is gone, and of those before it.
func (m *memory) outlive(uid types.UID) {
	for {
		newest := m.remembered.Load()
		if m.remembered.CompareAndSwap(newest, newest.after(uid)) {
			return
		}
	}
}

// after is what is left without the object and those before it.
func (r *remembered) after(uid types.UID) *remembered {
	if r == nil || r.uid == uid {
		return nil
	}
	return &remembered{r.uid, r.values, r.former.after(uid)}
}

// recollection is the part that goes when the object is replaced.
type recollection struct {
	uid types.UID
	// floor is the version of our last write, or of one that is known otherwise:
	// nothing older may be acted upon. Versions grow from object to object, too.
	floor   string
	floorAt time.Time
	// settled is the version at which a pass found nothing left to do.
	settled string
	// pending is what could not be written yet.
	pending *intent
	// unsent is what handlers without progress want to be written.
	unsent []execution.Edit
	// background has the daemons and timers; nil: there were none yet.
	background *background

	doubt   bool // the fate of our last write is not known
	handled bool // a cycle was completed, or nothing was to be handled
	looked  bool // the object was looked at by a pass of this process
	// inherited: the cycle was begun by an earlier process.
	inherited bool
	released  bool // our finalizer was the last: the object is gone for us
	ended     bool // the event handlers were told that the object is gone

	failures  int // of the framework or the API, consecutively
	notBefore time.Time
	said      map[string]struct{} // what is reported once
}

// finished notes that this process has called a handler in a cycle that an earlier one
// has begun. (There is a place for such rare things already.)
func (m *memory) finished(id string) { m.once(finishedHere + id) }

// wasFinished tells whether it has.
func (m *memory) wasFinished(id string) bool {
	_, was := m.said[finishedHere+id]
	return was
}

// finishedHere begins the notes about handlers, which are not words of a report.
const finishedHere = "\x00finished "

// renew forgets everything of an object that was replaced by another one of
// the same name.
func (m *memory) renew(uid types.UID) {
	if m.uid == uid {
		m.uid = uid // the text of the snapshot that is kept now: the earlier one can go
		return
	}
	if m.uid != "" {
		m.initial.Store(false)
	}
	m.background.close()
	m.recollection = recollection{uid: uid, floor: m.floor, floorAt: m.floorAt}
}

// written raises the floor to the version that a write has produced.
func (m *memory) written(body *object.Body) {
	m.doubt = false
	if version := body.ResourceVersion(); version != m.floor {
		m.floor, m.floorAt, m.settled = version, time.Now(), ""
	}
}

// stale tells whether the version is older than our own last write.
func (m *memory) stale(version string) bool {
	if m.floor == "" || version == m.floor {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, m.floor)
	// Versions that cannot be compared come from an API server that is not
	// Kubernetes' own: then only what is equal is known to be fresh enough.
	return err != nil || order < 0
}

// once tells whether something is to be reported: the first time for an object.
func (m *memory) once(what string) bool {
	if _, said := m.said[what]; said {
		return false
	}
	if m.said == nil {
		m.said = map[string]struct{}{}
	}
	m.said[what] = struct{}{}
	return true
}

// memories are those of all objects.
type memories struct {
	mu      sync.Mutex
	objects map[object.Key]*memory
}

// of returns the memory of an object, a new one if there is none.
func (m *memories) of(key object.Key) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects == nil {
		m.objects = map[object.Key]*memory{}
	}
	known := m.objects[key]
	if known == nil {
		known = &memory{}
		m.objects[key] = known
	}
	return known
}

// known tells whether there is a memory of the object.
func (m *memories) known(key object.Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects[key] != nil
}

// forget drops the memory of an object that is gone.
func (m *memories) forget(key object.Key) {
	m.mu.Lock()
	known := m.objects[key]
	delete(m.objects, key)
	m.mu.Unlock()
	if known != nil {
		known.background.close()
	}
}
