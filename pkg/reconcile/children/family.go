package children

import (
	"cmp"
	"slices"
	"strings"
)

// family has the children with one link, and those who follow them.
type family struct {
	members   map[*Child]struct{}
	followers []Follower
}

func (x *Index) link(link Link, child *Child) {
	f := x.family(link)
	if f.members == nil {
		f.members = map[*Child]struct{}{}
	}
	f.members[child] = struct{}{}
}

// family returns the family of a link, and creates it if necessary.
func (x *Index) family(link Link) *family {
	f := x.families[link]
	if f == nil {
		f = &family{}
		x.families[link] = f
	}
	return f
}

func (x *Index) unlink(link Link, child *Child) {
	if f := x.families[link]; f != nil {
		delete(f.members, child)
		if len(f.members) == 0 {
			f.members = nil
		}
		x.forgetIfEmpty(link)
	}
}

func (x *Index) forgetIfEmpty(link Link) {
	if f := x.families[link]; len(f.members)+len(f.followers) == 0 {
		delete(x.families, link)
	}
}

// Follow tells a follower about all changes of the children with the link from now on. The
// function is called before that with the children so far, while the index is locked; nil is
// not called.
func (x *Index) Follow(link Link, follower Follower, begin func(children []Child)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.family(link)
	if begin != nil {
		begin(f.children())
	}
	if !slices.Contains(f.followers, follower) {
		f.followers = append(slices.Clip(f.followers), follower)
	}
}

// Unfollow ends what Follow began.
func (x *Index) Unfollow(link Link, follower Follower) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.families[link]
	if f == nil {
		return
	}
	f.followers = slices.DeleteFunc(f.followers, func(other Follower) bool { return other == follower })
	if len(f.followers) == 0 {
		f.followers = nil
	}
	x.forgetIfEmpty(link)
}

// Children returns the children with the link, sorted by resource, namespace, and name.
func (x *Index) Children(link Link) []Child {
	var found []Child
	x.View(link, func(children []Child) { found = children })
	return found
}

// View calls a function with what Children returns, while the index is locked: no follower is
// told anything meanwhile.
func (x *Index) View(link Link, view func(children []Child)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	view(x.families[link].children())
}

func (f *family) children() []Child {
	if f == nil {
		return nil
	}
	all := make([]Child, 0, len(f.members))
	for child := range f.members {
		all = append(all, *child)
	}
	slices.SortFunc(all, compare)
	return all
}

// compare orders children by resource, namespace, and name.
func compare(a, b Child) int {
	byKind := 0
	if a.Kind != b.Kind {
		byKind = strings.Compare(a.Kind.String(), b.Kind.String())
	}
	return cmp.Or(
		byKind,
		strings.Compare(a.Snapshot.GetNamespace(), b.Snapshot.GetNamespace()),
		strings.Compare(a.Snapshot.GetName(), b.Snapshot.GetName()),
	)
}
