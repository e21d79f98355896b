package triggers

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// ChildKind is a watched resource whose objects can be children. It is compared by its address.
type ChildKind struct {
	selector.Resource
	// Selectors are those of children that have found the resource.
	Selectors []selector.Selector
	// Objects returns all objects of the watch, for links that are added later.
	Objects func() []*object.Snapshot
}

// Child is one version of a child.
type Child struct {
	Kind     *ChildKind
	Snapshot *object.Snapshot
}

// Change describes an event of a child, from the view of one parent.
type Change string

// The changes of children.
const (
	// Created means that the child is new. After a start, and after a resource is
	// installed, this includes the children that existed before.
	Created Change = "created"
	// Arrived means that the child existed before, and has the link now.
	Arrived Change = "arrived"
	// Modified means that the child has another version.
	Modified Change = "modified"
	// Left means that the child still exists, but does not have the link anymore, or does not match the selectors
	// of the watch.
	Left Change = "left"
	// Deleted means that the child does not exist anymore.
	Deleted Change = "deleted"
)

// IsGone reports whether the parent does not have the child anymore.
func (c Change) IsGone() bool { return c == Left || c == Deleted }

// Event is a change of a child with a link.
type Event struct {
	Change Change
	Link   Link
	// Child is the child after the change; after its deletion, it is the last version.
	Child Child
	// Before is the version before the change. It is nil if the child is new.
	Before *object.Snapshot
}

// Follower is told about the changes of the children with a link. Observe is called while the
// index is locked: it must return quickly, and must not call the index.
type Follower interface{ Observe(event Event) }

// Link connects a child and its parent. Compare links with ==.
type Link struct {
	by    string // "owner Kind.group" or "label key", which many links share
	value string
}

// OwnedBy returns the link of the children with an owner reference to a parent.
func OwnedBy(kind schema.GroupKind, uid types.UID) Link {
	return Link{byOwner(kind), string(uid)}
}

// LabeledWith returns the link of the children that have a label with the value.
func LabeledWith(key, value string) Link { return Link{byLabel(key), value} }

// String returns the link in the form of log lines.
func (l Link) String() string { return l.by + "=" + l.value }

func byOwner(kind schema.GroupKind) string { return "owner " + kind.String() }

func byLabel(key string) string { return "label " + key }

// Children is the index of the children of all parents. It is safe for concurrent use.
type Children struct {
	mu sync.Mutex
	// owners and labels are the links that the index keeps: what they are by.
	owners   map[schema.GroupKind]string
	labels   map[string]string // by key
	kinds    map[*ChildKind]struct{}
	members  map[identity]*Child // all that have a link
	families map[Link]*family
}

// identity identifies a child. An object that is watched in two versions is one child of each
// kind.
type identity struct {
	kind *ChildKind
	uid  types.UID
}

// NewChildren returns an empty index.
func NewChildren() *Children {
	return &Children{
		owners:   map[schema.GroupKind]string{},
		labels:   map[string]string{},
		kinds:    map[*ChildKind]struct{}{},
		members:  map[identity]*Child{},
		families: map[Link]*family{},
	}
}

// IndexOwners adds a kind of parents: from now on, the index has the children with owner
// references to them, including those that exist already. Followers are not told about these.
func (c *Children) IndexOwners(parents schema.GroupKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.owners[parents]
	if !known {
		c.owners[parents] = byOwner(parents)
		c.addExisting()
	}
}

// IndexLabel is IndexOwners for a label of children.
func (c *Children) IndexLabel(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.labels[key]
	if !known {
		c.labels[key] = byLabel(key)
		c.addExisting()
	}
}

// AddKind adds a kind of children, with the objects that exist already. Followers are not told
// about these.
func (c *Children) AddKind(kind *ChildKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[kind] = struct{}{}
	c.add(kind)
}

func (c *Children) addExisting() {
	for kind := range c.kinds {
		c.add(kind)
	}
}

// add adds the objects of a kind as they are. Events that are on the way change nothing in the
// end.
func (c *Children) add(kind *ChildKind) {
	for _, snapshot := range kind.Objects() {
		id := identity{kind, snapshot.GetUID()}
		known := c.members[id]
		if known == nil {
			known = &Child{kind, snapshot}
		}
		for _, link := range c.linksOf(known.Snapshot) {
			c.members[id] = known
			c.link(link, known)
		}
	}
}

// linksOf returns the links of a child that the index keeps.
func (c *Children) linksOf(child *object.Snapshot) []Link {
	var links []Link
	add := func(link Link) {
		if !slices.Contains(links, link) {
			links = append(links, link)
		}
	}
	if len(c.owners) > 0 {
		for _, owner := range child.Owners() {
			by, isKept := c.owners[owner.GroupKind]
			if isKept {
				add(Link{by, string(owner.UID)})
			}
		}
	}
	if len(c.labels) > 0 {
		labels := child.Labels()
		for key, by := range c.labels {
			if labels[key] != "" {
				add(Link{by, labels[key]})
			}
		}
	}
	return links
}

// Forget removes the objects of a kind that is no longer watched, in one namespace, or in all
// if it is empty. Followers are not told: the objects may still exist.
func (c *Children) Forget(kind *ChildKind, namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if namespace == "" {
		delete(c.kinds, kind)
	}
	for id, child := range c.members {
		if child.Kind != kind || namespace != "" && child.Snapshot.GetNamespace() != namespace {
			continue
		}
		for _, link := range c.linksOf(child.Snapshot) {
			c.unlink(link, child)
		}
		delete(c.members, id)
	}
}

// HasFollowers reports whether anybody is told about a child that is in the index.
func (c *Children) HasFollowers(kind *ChildKind, child *object.Snapshot) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.members[identity{kind, child.GetUID()}]
	return known != nil && slices.ContainsFunc(c.linksOf(known.Snapshot), func(link Link) bool {
		f := c.families[link]
		return f != nil && len(f.followers) > 0
	})
}

// Observe changes the index after a watch event of a child, and tells the followers. An event with the type
// object.Vanished is for a child that is known to exist, and is not watched anymore.
func (c *Children) Observe(kind *ChildKind, event object.WatchEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := identity{kind, event.Snapshot.GetUID()}
	m := move{child: c.members[id], event: event.Type}
	if m.child != nil {
		m.former = m.child.Snapshot
		m.before = c.linksOf(m.former)
	}
	if event.Type != apiwatch.Deleted && event.Type != object.Vanished {
		m.now = c.linksOf(event.Snapshot)
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
		c.members[id] = m.child // also shares the memory of the uid with the newest snapshot
	} else {
		delete(c.members, id)
	}
	for _, link := range m.before {
		if slices.Contains(m.now, link) {
			continue
		}
		c.tell(link, m)
		c.unlink(link, m.child)
	}
	for _, link := range m.now {
		c.link(link, m.child)
		c.tell(link, m)
	}
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

// tell tells the followers of a link about a move.
func (c *Children) tell(link Link, m move) {
	f := c.families[link]
	if f == nil {
		return
	}
	for _, follower := range f.followers {
		follower.Observe(Event{Change: m.changeOf(link), Link: link, Child: *m.child, Before: m.former})
	}
}

// family has the children with one link, and those who follow them.
type family struct {
	members   map[*Child]struct{}
	followers []Follower
}

func (c *Children) link(link Link, child *Child) {
	f := c.family(link)
	if f.members == nil {
		f.members = map[*Child]struct{}{}
	}
	f.members[child] = struct{}{}
}

// family returns the family of a link, and creates it if necessary.
func (c *Children) family(link Link) *family {
	f := c.families[link]
	if f == nil {
		f = &family{}
		c.families[link] = f
	}
	return f
}

func (c *Children) unlink(link Link, child *Child) {
	f := c.families[link]
	if f == nil {
		return
	}
	delete(f.members, child)
	if len(f.members) == 0 {
		f.members = nil
	}
	c.forgetIfEmpty(link)
}

func (c *Children) forgetIfEmpty(link Link) {
	f := c.families[link]
	if len(f.members)+len(f.followers) == 0 {
		delete(c.families, link)
	}
}

// Follow tells a follower about all changes of the children with the link from now on. The
// function is called before that with the children so far, while the index is locked; nil is
// not called.
func (c *Children) Follow(link Link, follower Follower, begin func(children []Child)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.family(link)
	if begin != nil {
		begin(f.children())
	}
	if !slices.Contains(f.followers, follower) {
		f.followers = append(slices.Clip(f.followers), follower)
	}
}

// Unfollow ends what Follow began.
func (c *Children) Unfollow(link Link, follower Follower) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.families[link]
	if f == nil {
		return
	}
	f.followers = slices.DeleteFunc(f.followers, func(other Follower) bool { return other == follower })
	if len(f.followers) == 0 {
		f.followers = nil
	}
	c.forgetIfEmpty(link)
}

// Of returns the children with the link, sorted by resource, namespace, and name.
func (c *Children) Of(link Link) []Child {
	var found []Child
	c.View(link, func(children []Child) { found = children })
	return found
}

// View calls a function with what Of returns, while the index is locked: no follower is
// told anything meanwhile.
func (c *Children) View(link Link, view func(children []Child)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	view(c.families[link].children())
}

// children returns the members, sorted by resource, namespace, and name. A nil family has none.
func (f *family) children() []Child {
	if f == nil {
		return nil
	}
	all := make([]Child, 0, len(f.members))
	for child := range f.members {
		all = append(all, *child)
	}
	slices.SortFunc(all, func(a, b Child) int {
		byKind := 0
		if a.Kind != b.Kind {
			byKind = strings.Compare(a.Kind.String(), b.Kind.String())
		}
		return cmp.Or(
			byKind,
			strings.Compare(a.Snapshot.GetNamespace(), b.Snapshot.GetNamespace()),
			strings.Compare(a.Snapshot.GetName(), b.Snapshot.GetName()),
		)
	})
	return all
}
