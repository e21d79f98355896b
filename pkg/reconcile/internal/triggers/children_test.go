package triggers_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
)

func newChildren() *triggers.Children {
	x := triggers.NewChildren()
	x.IndexOwners(webs)
	x.IndexLabel("parent")
	return x
}

func TestFollowersAreToldAboutChildren(t *testing.T) {
	x, kind := newChildren(), pods()
	w := follow(x, ownedBy("u1"))
	x.Observe(kind, object.WatchEvent{Snapshot: pod(t, "a", "owner=u1")})
	x.Observe(kind, added(pod(t, "b", "owner=u1")))
	x.Observe(kind, added(pod(t, "stranger", "owner=u2")))
	x.Observe(kind, modified(pod(t, "a", "owner=u1", "size=1")))
	w.expect(t, "a created", "b created", "a modified from v0")
	if got := names(x.Of(ownedBy("u1"))); got != "a b" {
		t.Errorf("got %s", got)
	}
	x.Observe(kind, deleted(pod(t, "a", "owner=u1", "size=2")))
	w.expect(t, "a deleted from v1")
	if got := names(x.Of(ownedBy("u1"))); got != "b" {
		t.Errorf("got %s", got)
	}
	x.Unfollow(ownedBy("u1"), w)
	x.Observe(kind, deleted(pod(t, "b", "owner=u1")))
	w.expect(t)
}

func TestAMovedChildLeavesOneParentAndArrivesAtAnother(t *testing.T) {
	for name, test := range map[string]struct{ before, after string }{
		"by its owner": {"owner=u1", "owner=u2"},
		"by its label": {"label=u1", "label=u2"},
	} {
		t.Run(name, func(t *testing.T) {
			x, kind := newChildren(), pods()
			link := ownedBy
			if test.before == "label=u1" {
				link = func(uid string) triggers.Link { return triggers.LabeledWith("parent", uid) }
			}
			first, second := follow(x, link("u1")), follow(x, link("u2"))
			x.Observe(kind, added(pod(t, "a", test.before)))
			x.Observe(kind, modified(pod(t, "a", test.after, "size=1")))
			first.expect(t, "a created", "a left from v0")
			second.expect(t, "a arrived from v0")
			x.Observe(kind, modified(pod(t, "a", "size=2")))
			second.expect(t, "a left from v1")
			x.Observe(kind, modified(pod(t, "a", test.before, "size=3")))
			first.expect(t, "a arrived")
		})
	}
}

// The last version of a deleted object can have other owners than the one before.
func TestADeletedChildLeavesItsLastKnownParent(t *testing.T) {
	x, kind := newChildren(), pods()
	w := follow(x, ownedBy("u1"))
	x.Observe(kind, added(pod(t, "a", "owner=u1")))
	x.Observe(kind, deleted(pod(t, "a")))
	w.expect(t, "a created", "a deleted from v0")
	if got := x.Of(ownedBy("u1")); len(got) > 0 {
		t.Errorf("got %s", names(got))
	}
}

func TestAChildCanHaveSeveralLinksToOneParent(t *testing.T) {
	x, kind := newChildren(), pods()
	w := follow(x, ownedBy("u1"))
	x.Observe(kind, added(pod(t, "a", "owner=u1", "owner=u1", "owner=u2", "label=u1")))
	w.expect(t, "a created")
}

// Kinds of parents and labels can become known after their children.
func TestExistingChildrenAreAdded(t *testing.T) {
	x, kind := triggers.NewChildren(), pods(pod(t, "a", "owner=u1", "label=u1"))
	x.AddKind(kind)
	x.Observe(kind, modified(pod(t, "a", "owner=u1", "label=u1")))
	if got := x.Of(ownedBy("u1")); len(got) > 0 {
		t.Errorf("got %s", names(got))
	}
	w := follow(x, ownedBy("u1"))
	x.IndexOwners(webs)
	x.IndexLabel("parent")
	for _, link := range []triggers.Link{ownedBy("u1"), triggers.LabeledWith("parent", "u1")} {
		if got := names(x.Of(link)); got != "a" {
			t.Errorf("got %q for %s", got, link)
		}
	}
	w.expect(t)
}

func TestForgottenChildrenAreNotTold(t *testing.T) {
	x, kind := newChildren(), pods()
	w := follow(x, ownedBy("u1"))
	x.Observe(kind, added(pod(t, "a", "owner=u1")))
	w.lines = nil
	x.Forget(kind, "other")
	if got := names(x.Of(ownedBy("u1"))); got != "a" {
		t.Errorf("got %s", got)
	}
	x.Forget(kind, "ns")
	if got := x.Of(ownedBy("u1")); len(got) > 0 {
		t.Errorf("got %s", names(got))
	}
	w.expect(t)
}

// The budget of a child is 600 bytes besides its snapshot, for all that is known about it. The
// index takes a part of it, also if each parent has only one child.
func TestAChildTakesLittleMemory(t *testing.T) {
	const count = 5000
	for _, test := range []struct {
		siblings int
		limit    int64
	}{{1, 500}, {5, 200}, {100, 150}} {
		x, kind := newChildren(), pods()
		var snapshots []*object.Snapshot
		for i := range count {
			snapshots = append(snapshots, pod(t, fmt.Sprintf("pod-%05d-0123456789", i), fmt.Sprintf("owner=%036d", i/test.siblings)))
		}
		before := inUse()
		for _, snapshot := range snapshots {
			x.Observe(kind, added(snapshot))
		}
		each := (inUse() - before) / count
		t.Logf("%d bytes per child, with %d per parent", each, test.siblings)
		if each > test.limit {
			t.Errorf("%d bytes per child with %d per parent, more than %d", each, test.siblings, test.limit)
		}
		before = inUse()
		for i, snapshot := range snapshots {
			x.Observe(kind, added(pod(t, snapshot.GetName(), fmt.Sprintf("owner=%036d", i/test.siblings))))
			snapshots[i] = nil
		}
		if grown := (inUse() - before) / count; grown > 500 { // the new snapshots replace the former ones
			t.Errorf("%d bytes per change of a child", grown)
		}
		runtime.KeepAlive(x)
	}
}

// Objects that are no children cost nothing.
func TestAStrangerTakesNoMemory(t *testing.T) {
	x, kind := newChildren(), pods()
	stranger := pod(t, "a")
	before := inUse()
	for range 1000 {
		x.Observe(kind, added(stranger))
	}
	if grown := inUse() - before; grown > 10_000 {
		t.Errorf("%d bytes for 1000 strangers", grown)
	}
	runtime.KeepAlive(x)
}

func inUse() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // a test does not take so much memory
}

// Selectors can name two versions of a resource.
func TestAnObjectInTwoVersionsIsAChildOfBothKinds(t *testing.T) {
	x, first, second := newChildren(), pods(), pods()
	for _, kind := range []*triggers.ChildKind{first, second} {
		x.Observe(kind, added(pod(t, "a", "owner=u1")))
	}
	if got := x.Of(ownedBy("u1")); len(got) != 2 {
		t.Errorf("got %s", names(got))
	}
	x.Forget(first, "")
	if got := x.Of(ownedBy("u1")); len(got) != 1 || got[0].Kind != second {
		t.Errorf("got %s", names(got))
	}
}

// A child that is out of sight still exists.
func TestChildLeavesSight(t *testing.T) {
	x, kind := newChildren(), pods()
	w := follow(x, ownedBy("u1"))
	child := pod(t, "a", "owner=u1")
	if x.HasFollowers(kind, child) {
		t.Error("a follower is told about a child that is not known")
	}
	x.Observe(kind, added(child))
	x.Observe(kind, added(pod(t, "stranger", "owner=u2")))
	if !x.HasFollowers(kind, pod(t, "a")) || x.HasFollowers(kind, pod(t, "stranger", "owner=u2")) {
		t.Error("the wrong children have followers")
	}
	x.Observe(kind, object.WatchEvent{Type: object.Vanished, Snapshot: pod(t, "a", "owner=u1", "size=1")})
	x.Observe(kind, object.WatchEvent{Type: object.Vanished, Snapshot: pod(t, "a", "owner=u1", "size=1")})
	w.expect(t, "a created", "a left from v0")
	if got := x.Of(ownedBy("u1")); len(got) > 0 || x.HasFollowers(kind, child) {
		t.Errorf("got %s", names(got))
	}
	x.Observe(kind, added(pod(t, "a", "owner=u1", "size=2")))
	w.expect(t, "a created")
}
