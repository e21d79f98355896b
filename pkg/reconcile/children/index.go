package children

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Index has the children of all parents. It is safe for concurrent use.
type Index struct {
	mu       sync.Mutex
	sorts    sorts
	kinds    map[*Kind]struct{}
	members  map[identity]*Child // all that have a link
	families map[Link]*family
}

// identity identifies a child. An object that is watched in two versions is one child of each
// kind.
type identity struct {
	kind *Kind
	uid  types.UID
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{
		sorts: sorts{map[schema.GroupKind]string{}, map[string]string{}},
		kinds: map[*Kind]struct{}{}, members: map[identity]*Child{}, families: map[Link]*family{},
	}
}

// IndexOwners adds a kind of parents: from now on, the index has the children with owner
// references to them, including those that exist already. Followers are not told about these.
func (x *Index) IndexOwners(parents schema.GroupKind) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.sorts.owners[parents]; !known {
		x.sorts.owners[parents] = ownerSort(parents)
		x.addExisting()
	}
}

// IndexLabel is IndexOwners for a label of children.
func (x *Index) IndexLabel(key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.sorts.labels[key]; !known {
		x.sorts.labels[key] = labelSort(key)
		x.addExisting()
	}
}

// AddKind adds a kind of children, with the objects that exist already. Followers are not told
// about these.
func (x *Index) AddKind(kind *Kind) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kinds[kind] = struct{}{}
	x.add(kind)
}

func (x *Index) addExisting() {
	for kind := range x.kinds {
		x.add(kind)
	}
}

// add adds the objects of a kind as they are. Events that are on the way change nothing in the
// end.
func (x *Index) add(kind *Kind) {
	for _, snapshot := range kind.Objects() {
		id := identity{kind, snapshot.GetUID()}
		known := x.members[id]
		if known == nil {
			known = &Child{kind, snapshot}
		}
		for _, link := range x.sorts.of(known.Snapshot) {
			x.members[id] = known
			x.link(link, known)
		}
	}
}

// Forget removes the objects of a kind that is no longer watched, in one namespace, or in all
// if it is empty. Followers are not told: the objects may still exist.
func (x *Index) Forget(kind *Kind, namespace string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if namespace == "" {
		delete(x.kinds, kind)
	}
	for id, child := range x.members {
		if child.Kind != kind || namespace != "" && child.Snapshot.GetNamespace() != namespace {
			continue
		}
		for _, link := range x.sorts.of(child.Snapshot) {
			x.unlink(link, child)
		}
		delete(x.members, id)
	}
}

// Observe changes the index after a watch event of a child, and tells the followers.
func (x *Index) Observe(kind *Kind, event object.WatchEvent) {
	x.mu.Lock()
	defer x.mu.Unlock()
	id := identity{kind, event.Snapshot.GetUID()}
	m := move{child: x.members[id], event: event.Type}
	if m.child != nil {
		m.former, m.before = m.child.Snapshot, x.sorts.of(m.child.Snapshot)
	}
	if event.Type != apiwatch.Deleted {
		m.now = x.sorts.of(event.Snapshot)
	}
	if len(m.before)+len(m.now) == 0 {
		return // nearly always, if most objects of the kind have other owners
	}
	if m.child == nil {
		m.child = &Child{}
	}
	m.child.Kind = kind
	m.child.Snapshot = event.Snapshot
	if len(m.now) > 0 {
		x.members[id] = m.child // also shares the memory of the uid with the newest snapshot
	} else {
		delete(x.members, id)
	}
	x.move(m)
}

// move is the way of a child from the links that it had to those that it has now.
type move struct {
	child       *Child
	former      *object.Snapshot // nil if it had no link
	event       apiwatch.EventType
	before, now []Link
}

// changeOf returns what the move is for one of the links.
func (m *move) changeOf(link Link) Change {
	had := slices.Contains(m.before, link)
	has := slices.Contains(m.now, link)
	switch {
	case had && has:
		return Modified
	case m.event == apiwatch.Deleted:
		return Deleted
	case had:
		return Left
	case m.former == nil && m.event != apiwatch.Modified:
		return Created
	default:
		return Arrived
	}
}

// move changes the families, and tells their followers.
func (x *Index) move(m move) {
	for _, link := range m.before {
		if slices.Contains(m.now, link) {
			continue
		}
		x.tell(link, m)
		x.unlink(link, m.child)
	}
	for _, link := range m.now {
		x.link(link, m.child)
		x.tell(link, m)
	}
}

func (x *Index) tell(link Link, m move) {
	if f := x.families[link]; f != nil {
		for _, follower := range f.followers {
			follower.Observe(Event{Change: m.changeOf(link), Link: link, Child: *m.child, Before: m.former})
		}
	}
}
