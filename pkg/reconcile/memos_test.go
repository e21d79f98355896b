package reconcile

import (
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

func TestMemosEndWithTheirObjects(t *testing.T) {
	var s objectState
	made := map[types.UID]*memo.Values{}
	for _, uid := range []types.UID{"u-1", "u-2", "u-3"} {
		made[uid] = s.memosOf(uid, nil)
	}
	for uid, values := range made {
		if s.memosOf(uid, nil) != values {
			t.Errorf("%s has other values", uid)
		}
	}
	s.dropMemos("u-0") // an object without values
	s.dropMemos("u-2")
	var left []types.UID
	for known := s.memos.Load(); known != nil; known = known.former {
		left = append(left, known.uid)
	}
	if len(left) != 1 || left[0] != "u-3" || s.memosOf("u-3", nil) != made["u-3"] {
		t.Errorf("left are %q: the object and those before it are gone, but a later one is not", left)
	}
}

// What handlers keep elsewhere for an object can be let go.
func TestTheContextsOfMemosEndWithTheirObjects(t *testing.T) {
	operator := memo.NewValues(nil)
	var s objectState
	made := map[types.UID]*memo.Values{}
	for _, uid := range []types.UID{"u-1", "u-2", "u-3"} {
		made[uid] = s.memosOf(uid, operator)
		if made[uid].Context().Err() != nil {
			t.Errorf("the context of %s is done", uid)
		}
	}
	s.dropMemos("u-2")
	for uid, want := range map[types.UID]bool{"u-1": true, "u-2": true, "u-3": false} {
		if done := made[uid].Context().Err() != nil; done != want {
			t.Errorf("the context of %s is done: %t", uid, done)
		}
	}

	e := atRest(t, 1)
	values := e.engine.objects.of(e.keys[0]).memosOf("u-4", operator)
	e.engine.objects.remove(e.keys[0], stop.Mismatch)
	if values.Context().Err() == nil {
		t.Error("the object is not handled anymore, and its context is not done")
	}
}

// Indexing functions, daemons, timers, and passes use the values at the same time.
func TestMemosAreSafeForConcurrentUse(t *testing.T) {
	for range 20_000 {
		var s objectState
		s.memosOf("u-1", nil)
		var values [2]*memo.Values
		var users sync.WaitGroup
		begin := make(chan struct{})
		for i := range values {
			users.Go(func() { <-begin; values[i] = s.memosOf("u-2", nil) })
		}
		users.Go(func() { <-begin; s.dropMemos("u-1") })
		close(begin)
		users.Wait()
		if values[0] != values[1] || s.memosOf("u-2", nil) != values[0] {
			t.Fatal("one object has two values")
		}
		for known := s.memos.Load(); known != nil; known = known.former {
			if known.uid == "u-1" {
				t.Fatal("the values of the object that is gone are kept")
			}
		}
	}
}

// Callers outside the watches, such as admission handlers, name objects that may not exist yet.
func TestOnlyWatchedObjectsKeepMemos(t *testing.T) {
	e := atRest(t, 1)
	key := e.keys[0]
	uid := e.engine.resources.get(key.Resource).Cached(key.NamespacedName).GetUID()
	unknown := kex.Resource
	unknown.Plural = "others"
	other := types.NamespacedName{Namespace: "ns", Name: "other"}
	tests := map[string]struct {
		memo func() *memo.Values
		kept bool
	}{
		"a watched object":      {func() *memo.Values { return e.engine.Memo(kex.Resource, key.NamespacedName, uid) }, true},
		"an object without uid": {func() *memo.Values { return e.engine.Memo(kex.Resource, key.NamespacedName, "") }, false},
		"an earlier object":     {func() *memo.Values { return e.engine.Memo(kex.Resource, key.NamespacedName, "u-0") }, false},
		"another object":        {func() *memo.Values { return e.engine.Memo(kex.Resource, other, uid) }, false},
		"another resource":      {func() *memo.Values { return e.engine.Memo(unknown, key.NamespacedName, uid) }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			first := test.memo()
			if first == nil || (test.memo() == first) != test.kept {
				t.Errorf("the values are kept: %t, want %t", !test.kept, test.kept)
			}
		})
	}
	if known := e.engine.objects.in(object.StreamKey{Resource: key.Resource}); len(known) != 1 || known[0] != key {
		t.Errorf("got states of %v", known)
	}
}

// The deletion of a watched object removes the values. No event would remove those of another one.
func TestMemoOfAnObjectThatIsNotWatchedIsNotKept(t *testing.T) {
	e := New(Config{})
	r := served(t, e, nil)
	stream := watch.NewStream(t.Context(), r.Resource, "", consumer{e})
	r.Add(stream)
	name := keyOf("a").NamespacedName
	if e.Memo(kex.Resource, name, "u-1") == nil || e.objects.has(keyOf("a")) {
		t.Error("an unknown object has values that are kept")
	}
	if err := stream.Add(seen(t, "7")); err != nil {
		t.Fatal(err)
	}
	kept := e.Memo(kex.Resource, name, "u-1")
	if kept == nil || kept != e.Memo(kex.Resource, name, "u-1") || kept == e.Memo(kex.Resource, name, "u-2") {
		t.Error("a watched object has no values, or those of another one")
	}
	if err := stream.Delete(seen(t, "8")); err != nil {
		t.Fatal(err)
	}
	if e.objects.has(keyOf("a")) {
		t.Error("the values outlive the object")
	}
}
