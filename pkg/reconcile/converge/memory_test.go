package converge

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// What a child may take at rest, and a child with an accepted field in addition; there is no copy
// of it besides. The names and hashes of this test are as long as real ones.
const (
	maxBytesPerChild         = 900
	maxBytesPerAcceptedField = 800
)

func TestMemoryOfChildrenAtRest(t *testing.T) {
	if plain := bytesPerChild(t, nil); plain > maxBytesPerChild {
		t.Errorf("a child takes %d bytes, at most %d are allowed", plain, maxBytesPerChild)
	}
	if accepting := bytesPerChild(t, accepted{"spec.replicas": hashOf(int64(3))}); accepting > maxBytesPerChild+maxBytesPerAcceptedField {
		t.Errorf("a child with an accepted field takes %d bytes, at most %d are allowed", accepting, maxBytesPerChild+maxBytesPerAcceptedField)
	}
}

// bytesPerChild returns the least of three measurements: what the runtime needs meanwhile is in some of them.
func bytesPerChild(t *testing.T, fields accepted) int {
	t.Helper()
	least := measureChildren(fields)
	for range 2 {
		least = min(least, measureChildren(fields))
	}
	t.Logf("%d bytes per child", least)
	return least
}

// measureChildren measures children at rest, with the same accepted fields.
func measureChildren(fields accepted) int {
	const parents, children = 400, 5
	server := &cluster{objects: map[string]*unstructured.Unstructured{}}
	o := newOperator(server)
	before := heap()
	for p := range parents {
		owner := o.owner
		owner.Parent.UID = types.UID(fmt.Sprintf("8c8ad6ac-1c0d-4a4c-8b0e-2f1b9d%06d", p))
		owner.Parent.Key.Name = fmt.Sprint("shop-", p)
		m := o.begin(Call{Owner: owner, Options: &o.options}, &o.options).memory
		for i := range children {
			f := readFact(childForMemory(owner, p, i, fields), "kopf-test")
			o.store.observe(f, false)
			m.judge(f)
		}
		m.end(nil)
	}
	perChild := int(heap()-before) / (parents * children)
	runtime.KeepAlive(o)
	return perChild
}

func childForMemory(owner Owner, p, i int, fields accepted) *unstructured.Unstructured {
	ch := &child{content: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": fmt.Sprintf("shop-%d-part-%d", p, i), "namespace": "some-namespace"}, "spec": map[string]any{"replicas": int64(3)}}}
	u := &unstructured.Unstructured{Object: claim{owner: owner}.mark(ch, owner.Hash(), false, fields).content}
	u.SetUID(types.UID(fmt.Sprintf("1c8ad6ac-1c0d-4a4c-8b0e-%06d%06d", p, i)))
	u.SetResourceVersion(fmt.Sprint(1000000 + p*10 + i))
	return u
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// What is not decided about a child is forgotten when it is decided, or the child is not wanted.
func TestDecisionsLeaveNothing(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	m := o.call().memory
	s := m.state
	isEmpty := func() bool { return s.lost == nil && s.deleted == nil && s.undecided == nil }
	one, two := Key{Name: "one"}, Key{Name: "two"}
	fields := accepted{"data.a": "hash"}
	for _, key := range []Key{one, two} {
		s.known[key] = &fact{Key: key, uid: types.UID(key.Name)}
	}
	m.setUndecided(one, fields)
	if got := m.unresolved(one); !maps.Equal(got.undecided, fields) {
		t.Error("the failure is forgotten")
	}
	m.expectDeletion("two")
	for _, key := range []Key{one, two} {
		s.lose(key, types.UID(key.Name))
	}
	if got := m.unresolved(one); !got.isLost || !got.mustAsk || got.undecided != nil || m.unresolved(two).isLost {
		t.Errorf("got %+v", s)
	}
	m.decideLoss(one)
	if got := m.unresolved(one); !got.isLost || got.mustAsk {
		t.Errorf("got %+v", got)
	}
	m.retain(map[Key]bool{one: true})
	if !m.unresolved(one).isLost {
		t.Error("a wanted child is forgotten")
	}
	m.setUndecided(one, fields)
	m.retain(map[Key]bool{two: true})
	if !isEmpty() {
		t.Errorf("got %+v", s)
	}
	m.setUndecided(one, fields)
	m.setUndecided(one, nil)
	m.expectDeletion("one")
	m.forgetDeletion("one")
	if !isEmpty() {
		t.Errorf("got %+v", s)
	}
}

// A contention about a child outlasts the longest pause, is reported once, and is forgotten when it is over.
func TestContentionOfAChildEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
		o.store.rule = contentionRule([]time.Duration{time.Second, time.Hour})
		one := Key{Name: "one"}
		m := o.call().memory
		reports := 0
		restore := func() {
			if m.countRestoration(one) {
				reports++
			}
		}
		contended := func() int {
			for _, n := range o.Counts() {
				return n.Contended
			}
			return 0
		}
		for i := range patience + 2 {
			if contended() != 0 && i <= patience {
				t.Errorf("%d restorations are a contention", i)
			}
			restore()
		}
		time.Sleep(2*window + time.Hour)
		if contended() != 1 {
			t.Error("the contention has ended before the handler could have been called again")
		}
		restore()
		if reports != 1 {
			t.Errorf("the contention was reported %d times", reports)
		}
		time.Sleep(2*window + time.Hour + 1)
		if contended() != 0 {
			t.Error("the contention has not ended")
		}
		m.end(nil)
		if m = o.call().memory; m.state.contended != nil {
			t.Errorf("left: %v", m.state.contended)
		}
		m.end(nil)
	})
}

// A child can appear after the call that did not want it: its creation was answered late, or another replica
// has created it.
func TestAChildThatAppearsAfterwardsIsDeleted(t *testing.T) {
	one := Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: "one"}
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		wanted bool
		pruned bool // the call had looked for children to delete when it ended
		atRest int  // calls if it appears after the call
		during int  // calls if it appears during the call
	}{
		"a child":                      {atRest: 1, during: 1},
		"a child that is deleted then": {pruned: true, atRest: 1},
		"a child that is wanted":       {wanted: true, atRest: 1},
		"a child of another controller": {change: func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{{UID: "other", Controller: new(true)}})
		}},
		"a child that is kept": {change: func(u *unstructured.Unstructured) {
			annotations := u.GetAnnotations()
			annotations[convergence.KeepAnnotation] = "true"
			u.SetAnnotations(annotations)
		}},
		"a child that goes away": {change: func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&metav1.Time{Time: time.Now()}) }},
		"a copy":                 {change: func(u *unstructured.Unstructured) { u.SetName("two") }},
		"an object of others":    {change: func(u *unstructured.Unstructured) { u.SetManagedFields(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			earlier := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
			expect(t, earlier, "apply one")
			child := earlier.objects["one"]
			if test.change != nil {
				test.change(child)
			}
			o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
			called := 0
			defer o.Follow(o.owner.Parent.UID, o.owner.Handler, func() { called++ })()
			call := func(during func(r *run)) {
				r := o.call()
				defer r.memory.end(map[Key]bool{one: test.wanted})
				during(r)
			}
			call(func(r *run) {
				o.show(child)
				if test.pruned {
					r.unwanted(nil)
				}
			})
			if called != test.during {
				t.Errorf("it appears during the call: got %d more", called)
			}
			o.store.observe(readFact(child, "kopf-test"), true)
			call(func(*run) {})
			called = 0
			o.show(child)
			if called != test.atRest {
				t.Errorf("it appears afterwards: got %d calls", called)
			}
			child.SetResourceVersion("999")
			o.show(child)
			if called != test.atRest {
				t.Errorf("it is changed: got %d calls", called)
			}
			labels := child.GetLabels()
			child.SetLabels(nil)
			o.show(child)
			child.SetLabels(labels)
			o.show(child)
			if called != 2*test.atRest {
				t.Errorf("its label is lost and comes back: got %d calls", called)
			}
		})
	}
}

// A child whose creation was not answered exists before a watch shows it.
func TestAChildWhoseCreationWasNotAnsweredIsDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		answer  error
		exists  bool
		failing error // of the read
		want    []string
	}{
		"it exists":         {answer: io.ErrUnexpectedEOF, exists: true, want: []string{"get one", "delete one"}},
		"it does not exist": {answer: io.ErrUnexpectedEOF, want: []string{"get one"}},
		"it was refused":    {answer: apierrors.NewForbidden(schema.GroupResource{}, "one", nil)},
		"the server failed": {answer: apierrors.NewInternalError(errors.New("etcd")), exists: true, want: []string{"get one", "delete one"}},
		"it cannot be read": {answer: io.ErrUnexpectedEOF, exists: true, failing: io.ErrUnexpectedEOF, want: []string{"get one"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
			expect(t, o, "apply one")
			child := o.objects["one"]
			delete(o.objects, "one")
			o.Forget(o.owner.Parent.UID)
			o.failing, o.failure = 1, test.answer
			if _, err := o.step(t); err == nil {
				t.Fatal("the creation was answered")
			}
			o.failing = 0
			if test.exists {
				o.objects["one"] = child
			}
			prune := func() (requests []string, err error) {
				o.requests = nil
				r := o.call()
				defer r.memory.end(nil)
				if err = r.findUnanswered(t.Context(), nil); err == nil {
					err = r.deleteAll(t.Context(), r.unwanted(nil))
				}
				r.memory.retain(nil)
				return o.requests, err
			}
			if test.failing != nil {
				o.failing, o.failure = 1, test.failing
			}
			requests, err := prune()
			if !slices.Equal(requests, test.want) || !errors.Is(err, test.failing) {
				t.Errorf("got the requests %q and the error %v", requests, err)
			}
			o.failing = 0
			if _, err = prune(); err != nil || o.objects["one"] != nil {
				t.Errorf("the child is left: %v", err)
			}
			if requests, _ = prune(); len(requests) > 0 {
				t.Errorf("got the requests %q once more", requests)
			}
		})
	}
}

// The next attempt to create a wanted child finds it out.
func TestAWantedChildWhoseCreationWasNotAnsweredIsNotRead(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	r := o.call()
	defer r.memory.end(nil)
	one, two := Key{Namespace: "ns", Name: "one"}, Key{Namespace: "ns", Name: "two"}
	for _, key := range []Key{one, two} {
		r.memory.doubt(key, configMaps)
	}
	if err := r.findUnanswered(t.Context(), map[Key]bool{one: true}); err != nil || !slices.Equal(o.requests, []string{"get two"}) {
		t.Errorf("got the requests %q and the error %v", o.requests, err)
	}
	if r.memory.judge(&fact{Key: one}); r.memory.state.unanswered != nil {
		t.Errorf("got %v", r.memory.state.unanswered)
	}
}

func TestAChildOfAProtectedKindIsNoStray(t *testing.T) {
	f := &fact{Key: Key{GroupKind: schema.GroupKind{Kind: "PersistentVolumeClaim"}}, digest: [hashSize]byte{1}, isBound: true}
	s := &state{options: &convergence.Options{}}
	if s.isStray(f) {
		t.Error("it would be looked at for ever, and stay")
	}
	if s.options.Prune = []schema.GroupKind{f.GroupKind}; !s.isStray(f) {
		t.Error("it would stay, although it may be deleted")
	}
}
