package converge

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/metrics"
)

// nursery is an operator whose handler has the children "one" and "two", and counts its calls.
type nursery struct {
	*operator
	called atomic.Int32
	stop   func()
}

func newNursery(delays ...time.Duration) *nursery {
	n := &nursery{operator: newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})}
	n.config.FormerManagers = []string{"former", "other"}
	n.store.rule = contentionRule(delays)
	n.stop = n.Follow(n.owner.Parent.UID, n.owner.Handler, func() { n.called.Add(1) })
	n.during(func(m *memory) {
		for _, name := range []string{"one", "two"} {
			n.store.observe(n.fact(name, 5), false)
			m.judge(n.fact(name, 5))
		}
	})
	return n
}

// during makes a call of the handler.
func (n *nursery) during(do func(m *memory)) {
	m := n.call().memory
	defer m.end(map[Key]bool{keyNamed("one"): true, keyNamed("two"): true})
	do(m)
}

func keyNamed(name string) Key {
	return Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: name}
}

// fact is a version of a child. It can have the changes "wants", "uid", "owner", and "progresses" and "fails".
func (n *nursery) fact(name string, version int, changes ...string) *fact {
	f := &fact{Key: keyNamed(name), uid: types.UID("uid-" + name), version: fmt.Sprint(version), owner: n.owner.Hash(), digest: [hashSize]byte{1}, isBound: true}
	f.marks.Parent, f.marks.Handler = "Shop ns/shop", n.owner.Handler
	for _, change := range changes {
		switch change {
		case "wants":
			f.marks.Wanted = "something else"
		case "uid":
			f.uid = "another"
		case "owner":
			f.owner = "another"
		case "progresses":
			f.readiness = inProgress
		case "fails":
			f.readiness = failed
		}
	}
	return f
}

func (n *nursery) state() *state { return n.store.states[n.owner.Hash()] }

// expectCalls compares the number of calls that were requested since the last time.
func (n *nursery) expectCalls(t *testing.T, want int) {
	t.Helper()
	if got := n.called.Swap(0); int(got) != want {
		t.Errorf("got %d calls, want %d", got, want)
	}
}

func TestAHandlerIsCalledForWhatMatters(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(n *nursery) (now *fact, deleted bool)
		calls   int
		version string // of the known child afterwards; empty if it is lost
	}{
		"the same version":                     {func(n *nursery) (*fact, bool) { return n.fact("one", 5), false }, 0, "5"},
		"nothing that matters":                 {func(n *nursery) (*fact, bool) { return n.fact("one", 6), false }, 0, "6"},
		"something else was wanted":            {func(n *nursery) (*fact, bool) { return n.fact("one", 6, "wants"), false }, 1, "5"},
		"an earlier version":                   {func(n *nursery) (*fact, bool) { return n.fact("one", 4, "wants"), false }, 0, "5"},
		"another owner":                        {func(n *nursery) (*fact, bool) { return n.fact("one", 6, "owner"), false }, 1, "5"},
		"the child is deleted":                 {func(n *nursery) (*fact, bool) { return n.fact("one", 6), true }, 1, ""},
		"an earlier one is deleted":            {func(n *nursery) (*fact, bool) { return n.fact("one", 6, "uid"), true }, 0, "5"},
		"it is replaced":                       {func(n *nursery) (*fact, bool) { return n.fact("one", 6, "uid"), false }, 1, "5"},
		"an unwanted child is deleted":         {func(n *nursery) (*fact, bool) { return n.fact("three", 6), true }, 0, "5"},
		"a child that another replica created": {func(n *nursery) (*fact, bool) { return n.fact("three", 6), false }, 1, "5"},
	} {
		for _, when := range []string{"at rest", "during a call", "before a call that fails"} {
			t.Run(name+" "+when, func(t *testing.T) {
				n := newNursery(time.Minute)
				now, deleted := test.change(n)
				switch when {
				case "at rest":
					n.store.observe(now, deleted)
				case "during a call":
					n.during(func(*memory) {
						n.store.observe(now, deleted)
						n.expectCalls(t, 0)
					})
				default:
					n.store.observe(now, deleted)
					n.expectCalls(t, test.calls)
					n.during(func(*memory) {})
					test.calls = 0
				}
				n.expectCalls(t, test.calls)
				var version string
				if known := n.state().known[keyNamed("one")]; known != nil {
					version = known.version
				}
				if mustAsk, isLost := n.state().lost[keyNamed("one")]; version != test.version || isLost != (version == "") || mustAsk != isLost {
					t.Errorf("got the version %s, lost: %t", version, isLost)
				}
			})
		}
	}
}

func TestTheOperatorsOwnDeletionsAreForgottenAfterwards(t *testing.T) {
	for _, when := range []string{"at rest", "during a call"} {
		n := newNursery()
		n.during(func(m *memory) {
			m.expectDeletion("uid-three")
			n.store.observe(n.fact("three", 5), false)
			if when == "during a call" {
				n.store.observe(n.fact("three", 6), true)
			}
		})
		if when == "at rest" {
			n.store.observe(n.fact("three", 6), true)
		}
		if n.state().deleted != nil {
			t.Errorf("%s: got %v", when, n.state().deleted)
		}
	}
}

// A stray that is gone at the end of the call in which it has appeared needs no other one.
func TestAStrayThatIsGoneNeedsNoCall(t *testing.T) {
	n := newNursery()
	n.during(func(*memory) {
		n.store.observe(n.fact("three", 5), false)
		n.store.observe(n.fact("three", 6), true)
	})
	n.expectCalls(t, 0)
}

// A call triggers another one only for what it cannot know.
func TestWhatACallCouldKnowNeedsNoOther(t *testing.T) {
	n := newNursery()
	n.store.observe(n.fact("three", 5), false)
	n.expectCalls(t, 1)
	n.during(func(*memory) { n.store.observe(n.fact("three", 6), false) })
	n.expectCalls(t, 0)

	delete(n.store.facts, keyNamed("two")) // the watch has not shown it yet
	m := n.call().memory
	n.store.observe(n.fact("two", 5), false)
	m.end(map[Key]bool{keyNamed("one"): true})
	n.expectCalls(t, 0)
}

func TestAChildThatIsDeletedDuringACallIsLostAtOnce(t *testing.T) {
	n := newNursery()
	one := keyNamed("one")
	n.during(func(m *memory) {
		n.store.observe(n.fact("one", 6), true)
		if got := slices.Collect(maps.Keys(m.children())); !slices.Equal(got, []Key{keyNamed("two")}) {
			t.Errorf("the children are %v", got)
		}
		if got := m.view(one); got.live != nil || got.known != nil || !m.unresolved(one).isLost {
			t.Errorf("got %+v", got)
		}
		m.judge(n.fact("one", 7, "uid"))
		if m.unresolved(one).isLost {
			t.Error("it is lost although it was created again")
		}
	})
	n.expectCalls(t, 0)
}

func TestChildrenAreKnownInTheirLatestVersions(t *testing.T) {
	n := newNursery()
	n.during(func(m *memory) {
		m.judge(n.fact("two", 7))
		m.judge(n.fact("three", 7)) // the watch does not show them yet
		m.judge(n.fact("four", 7, "owner"))
		n.store.observe(n.fact("stray", 7), false)
		n.store.observe(n.fact("one", 8), false)
		var got []string
		for key, f := range m.children() {
			got = append(got, key.Name+" "+f.version)
		}
		if slices.Sort(got); !slices.Equal(got, []string{"one 8", "stray 7", "three 7", "two 7"}) {
			t.Errorf("got %q", got)
		}
		m.setUndecided(keyNamed("one"), accepted{"data.a": "hash"})
		m.setUndecided(keyNamed("two"), accepted{"data.a": "hash"})
		m.retain(map[Key]bool{keyNamed("one"): true})
		if known := n.state().known; len(known) != 1 || known[keyNamed("one")] == nil || len(n.state().undecided) != 1 || m.unresolved(keyNamed("one")).undecided == nil {
			t.Errorf("got %v, %v", known, n.state().undecided)
		}
	})
	for _, name := range []string{"one", "two", "stray"} {
		n.store.observe(n.fact(name, 9), true)
	}
	if len(n.store.byOwner) > 0 || len(n.store.facts) > 0 {
		t.Errorf("got %v, %v", n.store.byOwner, n.store.facts)
	}
}

// A list says which children are gone: those that it could have, up to its version.
func TestAListShowsDeletions(t *testing.T) {
	n := newNursery()
	n.during(func(m *memory) {
		m.judge(n.fact("young", 8))
		m.judge(n.fact("old", 6)) // the watch has never shown it
	})
	for _, name := range []string{"one", "two", "young", "old", "elsewhere"} {
		n.state().known[keyNamed(name)] = n.fact(name, 6)
	}
	n.state().known[keyNamed("young")] = n.fact("young", 8)
	n.state().known[keyNamed("one")] = n.fact("one", 7)
	n.store.observe(n.fact("one", 7), false)
	n.store.observe(n.fact("elsewhere", 6), false)
	n.store.observe(n.fact("stray", 6), false)
	n.store.replace(func(key Key) bool { return key.Name != "elsewhere" }, []*fact{n.fact("two", 6)}, "7", false)
	var got []string
	for key := range n.state().known {
		got = append(got, key.Name)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"elsewhere", "two", "young"}) || n.store.facts[keyNamed("stray")] != nil {
		t.Errorf("got %q", got)
	}
}

func TestChildrenAreReportedWhenTheyAreSeen(t *testing.T) {
	n := newNursery()
	seen := 0
	n.store.seen = func(parent, handler string) {
		if parent != "Shop ns/shop" || handler != n.owner.Handler {
			t.Errorf("got %s, %s", parent, handler)
		}
		seen++
	}
	other := n.fact("other", 5)
	other.digest = [hashSize]byte{}
	n.store.observe(other, false)
	n.store.observe(n.fact("gone", 6), true)
	n.store.observe(n.fact("one", 6), false)
	if seen != 0 {
		t.Errorf("%d were reported that are not new, not there, or not applied", seen)
	}
	n.store.observe(n.fact("three", 6), false)
	if seen != 1 {
		t.Errorf("got %d reports", seen)
	}
}

func TestAHandlerThatDoesNotMatchAnymoreIsNotCalled(t *testing.T) {
	n := newNursery()
	n.stop()
	n.store.observe(n.fact("one", 6), true)
	n.store.observe(n.fact("two", 6), true)
	n.expectCalls(t, 0)
}

// contend makes another client change a child so often that it is restored less often.
func (n *nursery) contend(name string) {
	n.during(func(m *memory) {
		for range patience + 1 {
			m.countRestoration(keyNamed(name))
		}
	})
}

func TestAContendedChildWaitsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNursery(10 * time.Second)
		n.contend("one")
		for round := range 2 {
			n.store.observe(n.fact("two", 6+round, "wants"), false)
			n.expectCalls(t, 1)
			n.store.observe(n.fact("one", 6, "wants"), false)
			n.store.observe(n.fact("one", 7, "wants"), false)
			n.expectCalls(t, 0)
			n.store.observe(n.fact("two", 6+round, "wants"), false)
			n.expectCalls(t, 1)
			n.store.observe(n.fact("one", 8, "wants"), false)
			time.Sleep(10*time.Second - 1)
			synctest.Wait()
			n.expectCalls(t, 0)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			n.expectCalls(t, 1)
			n.contend("one")
		}
		n.during(func(*memory) { n.store.observe(n.fact("one", 9, "wants"), false) })
		n.expectCalls(t, 0)
		n.stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		n.expectCalls(t, 0)
	})
}

// A change of another child and a stray need no wait at the end of a call.
func TestTheEndOfACallWaitsOnlyForContendedChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, calls := range map[string]int{"one": 0, "two": 1, "three": 1} {
			n := newNursery(10 * time.Second)
			n.contend("one")
			n.during(func(*memory) { n.store.observe(n.fact(name, 6, "wants"), false) })
			n.expectCalls(t, calls)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			n.expectCalls(t, 1-calls)
		}
	})
}

func TestAContentionBeginsAnewAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNursery()
		n.contend("one")
		n.contend("two")
		time.Sleep(2*window + 1)
		n.during(func(m *memory) {
			if n.state().contended != nil {
				t.Errorf("got %v", n.state().contended)
			}
			for range patience {
				m.countRestoration(keyNamed("one"))
			}
			time.Sleep(window + 1) // in a long call
			if m.countRestoration(keyNamed("one")) {
				t.Error("the sixth restoration is reported, although the others were long ago")
			}
		})
	})
}

func TestChildrenAreCounted(t *testing.T) {
	n := newNursery()
	n.options.WaitReady = true
	n.contend("one")
	n.during(func(m *memory) {
		m.judge(n.fact("two", 6, "progresses"))
		m.judge(n.fact("three", 6, "fails"))
		m.countRestoration(keyNamed("two"))
		m.countRestoration(keyNamed("three"))
	})
	want := map[Ensured]metrics.Children{{"shops.v1.kopf.dev", "children"}: {Ready: 1, Progressing: 1, Failed: 1, Contended: 1}}
	for range 2 {
		if got := n.Counts(); !maps.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	}
	unready := func(waiting, broken string) {
		t.Helper()
		for range 2 {
			if gotWaiting, gotBroken := n.Unready("parent"); fmt.Sprint(gotWaiting, gotBroken) != waiting+" "+broken {
				t.Errorf("got %q, %q", gotWaiting, gotBroken)
			}
		}
	}
	unready("[ConfigMap ns/two]", "[ConfigMap ns/three]")
	n.options.WaitReady = false
	unready("[]", "[]")
	n.options.WaitReady = true
	n.stop()
	unready("[]", "[]")
}

// A replica that gives up a shard forgets the children of its objects. That is no deletion.
func TestChildrenOfOtherReplicasAreForgotten(t *testing.T) {
	n := newNursery()
	for name, controller := range map[string]types.UID{"ours": "here", "theirs": "elsewhere", "uncontrolled": ""} {
		f := n.fact(name, 5)
		f.controller = controller
		n.store.observe(f, false)
	}
	before := n.called.Load()
	n.LeaveChildren(func(namespace string, controller types.UID) bool { return namespace == "ns" && controller == "here" })
	for name, want := range map[string]bool{"ours": true, "theirs": false, "uncontrolled": true} {
		isOwners := slices.ContainsFunc(n.store.byOwner[n.owner.Hash()], func(f *fact) bool { return f.Key == keyNamed(name) })
		if _, is := n.store.facts[keyNamed(name)]; is != want || isOwners != want {
			t.Errorf("%s: got %t, and %t by its owner", name, is, isOwners)
		}
	}
	if called := n.called.Load() - before; called > 0 {
		t.Errorf("the handler was called %d times", called)
	}
	var none *Converger
	none.LeaveChildren(nil)
}
