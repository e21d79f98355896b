package reconcile

import (
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
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

// vanishing is a watch in which an object is found once, and then no more.
type vanishing struct {
	cache.SharedIndexInformer
	cache.Store

	object  *object.Snapshot
	lookups int
}

func (v *vanishing) GetStore() cache.Store { return v }

func (v *vanishing) GetByKey(string) (any, bool, error) {
	if v.lookups++; v.lookups > 1 {
		return nil, false, nil
	}
	return v.object, true, nil
}

// No event follows that would remove the state. If there was one before, its event does.
func TestMemoOfAnObjectThatIsDeletedMeanwhileIsNotKept(t *testing.T) {
	for name, known := range map[string]bool{"an unknown object": false, "a known object": true} {
		t.Run(name, func(t *testing.T) {
			e := New(Config{})
			r := served(t, e, nil)
			informer := cache.NewSharedIndexInformer(nil, &object.Snapshot{}, 0, cache.Indexers{})
			stream, err := watch.NewStream("", &vanishing{SharedIndexInformer: informer, object: seen(t, "7")}, watch.Listener(t.Context(), r.Resource, consumer{e}))
			if err != nil {
				t.Fatal(err)
			}
			r.Add(stream)
			if known {
				e.objects.of(keyOf("a"))
			}
			if e.Memo(kex.Resource, keyOf("a").NamespacedName, "u-1") == nil {
				t.Error("no values")
			}
			if e.objects.has(keyOf("a")) != known {
				t.Errorf("the state is there: %t", !known)
			}
		})
	}
}
