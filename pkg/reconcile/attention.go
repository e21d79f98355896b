package reconcile

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
)

// attentions wake the daemons that wait for changes of fields of their objects. The watch shows the versions of an
// object, and the pass says which of them the operator has written itself: those wake no daemon. Only objects
// with such daemons have an entry, and only a digest of the fields is kept. It is safe for concurrent use.
type attentions struct {
	mu sync.Mutex
	of map[object.Key]*attendedObject
}

// attendedObject is an object with daemons that wait for its changes, or that is being written.
type attendedObject struct {
	daemons []*attention
	// writing is set while the operator writes. What the watch shows meanwhile can be that write, so it is late: it is
	// looked at after the response.
	writing bool
	late    *object.Snapshot
}

// attention is what one daemon knows of its object.
type attention struct {
	uid     types.UID
	fields  []object.Path
	wake    func()
	version string // the latest that was looked at
	digest  uint64 // of the fields in it
	// expected is the digest after a write without a response, which may have been committed; 0 without one.
	expected uint64
}

// follow begins to wake a daemon, for changes that are later than the object that current returns. The result ends it.
func (as *attentions) follow(key object.Key, a *attention, current func() *object.Body) (end func()) {
	as.mu.Lock()
	defer as.mu.Unlock()
	entry := as.entry(key)
	entry.daemons = append(entry.daemons, a)
	body := current()
	a.version = body.ResourceVersion()
	a.digest = a.digestOf(body)
	return func() {
		as.mu.Lock()
		defer as.mu.Unlock()
		entry.daemons = slices.DeleteFunc(entry.daemons, func(other *attention) bool { return other == a })
		as.forgetIfIdle(key)
	}
}

func (as *attentions) entry(key object.Key) *attendedObject {
	if as.of == nil {
		as.of = map[object.Key]*attendedObject{}
	}
	known := as.of[key]
	if known == nil {
		known = &attendedObject{}
		as.of[key] = known
	}
	return known
}

func (as *attentions) forgetIfIdle(key object.Key) {
	known := as.of[key]
	if known != nil && len(known.daemons) == 0 && !known.writing {
		delete(as.of, key)
	}
}

// observe looks at a version that the watch shows.
func (as *attentions) observe(key object.Key, snapshot *object.Snapshot) {
	as.mu.Lock()
	defer as.mu.Unlock()
	known := as.of[key]
	switch {
	case known == nil:
	case known.writing:
		known.late = snapshot
	default:
		known.see(snapshot.Body())
	}
}

// beginWrite says that the operator writes to the object.
func (as *attentions) beginWrite(key object.Key) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.entry(key).writing = true
}

// endWrite says what has become of the write: see write.Observer.
func (as *attentions) endWrite(key object.Key, before, after *object.Body, certain bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	known := as.of[key]
	for _, a := range known.daemons {
		a.see(before)
		switch {
		case after == nil:
		case certain:
			a.adopt(after)
		default:
			a.expected = a.digestOf(after)
		}
	}
	known.writing = false
	if known.late != nil {
		known.see(known.late.Body())
		known.late = nil
	}
	as.forgetIfIdle(key)
}

// beginAnew looks at the first version of another history of the cluster, whose versions can be lower.
func (as *attentions) beginAnew(key object.Key, now *object.Body) {
	as.mu.Lock()
	defer as.mu.Unlock()
	known := as.of[key]
	if known == nil {
		return
	}
	for _, a := range known.daemons {
		a.version = ""
		a.see(now)
	}
}

func (e *attendedObject) see(body *object.Body) {
	for _, a := range e.daemons {
		a.see(body)
	}
}

// see wakes the daemon if the fields have changed.
func (a *attention) see(body *object.Body) {
	if a.isOutdated(body) {
		return
	}
	digest := a.digestOf(body)
	if digest != a.digest && digest != a.expected {
		a.wake()
	}
	a.version = body.ResourceVersion()
	a.digest = digest
}

// adopt accepts a version that the operator has written.
func (a *attention) adopt(body *object.Body) {
	if a.isOutdated(body) {
		return
	}
	a.version = body.ResourceVersion()
	a.digest = a.digestOf(body)
	a.expected = 0
}

// isOutdated reports whether a later version was looked at, or this one, or whether it is another object.
func (a *attention) isOutdated(body *object.Body) bool {
	version := body.ResourceVersion()
	return body.UID() != a.uid || version == a.version || relist.IsOlder(version, a.version)
}

// digestOf returns a digest of the fields.
func (a *attention) digestOf(body *object.Body) uint64 {
	digest := fnv.New64a()
	for _, field := range a.fields {
		value, exists := handler.LookAt(body, field)
		if exists {
			text, _ := json.Marshal(value) // it is decoded JSON
			_, _ = digest.Write(text)      // never fails
		}
		_, _ = digest.Write([]byte{0})
	}
	return digest.Sum64()
}

// Follow wakes a daemon when what it looks at changes.
func (b *background) Follow(d *handler.Declaration, wake func()) (end func()) {
	endFields := func() {}
	endChildren := func() {}
	if len(d.WakeOn) > 0 {
		endFields = b.engine.attentions.follow(b.key, &attention{uid: b.uid, fields: d.WakeOn, wake: wake}, b.live)
	}
	if len(d.Owned) > 0 {
		f := &childFollower{of: d, wake: wake}
		link := b.linkOf(d)
		b.engine.children.Follow(link, f, nil)
		endChildren = func() { b.engine.children.Unfollow(link, f) }
	}
	return func() {
		endFields()
		endChildren()
	}
}

// Children returns the children that a daemon looks at, as the watch has shown them.
func (b *background) Children(d *handler.Declaration) []*object.Snapshot {
	var all []*object.Snapshot
	for _, child := range b.engine.children.Of(b.linkOf(d)) {
		if looksAt(d, child) {
			all = append(all, child.Snapshot)
		}
	}
	return all
}

// linkOf returns what the object and its children have in common.
func (b *background) linkOf(d *handler.Declaration) triggers.Link {
	return linkOf(d, b.resource, b.uid)
}

// childFollower wakes a daemon when a child changes.
type childFollower struct {
	of   *handler.Declaration
	wake func()
}

var _ triggers.Follower = (*childFollower)(nil)

// Observe implements triggers.Follower.
func (f *childFollower) Observe(event triggers.Event) {
	if looksAt(f.of, event.Child) {
		f.wake()
	}
}

func looksAt(d *handler.Declaration, child triggers.Child) bool {
	return slices.ContainsFunc(child.Kind.Selectors, d.LooksAt)
}
