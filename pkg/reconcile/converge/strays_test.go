package converge

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

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
				r := newRun(o.Converger, Call{Owner: o.owner, Options: &o.options, Log: logr.Discard()}, o.begin(o.owner, &o.options, false))
				defer r.end()
				if r.keys = map[Key]bool{}; test.wanted {
					r.keys[one] = true
				}
				during(r)
			}
			call(func(r *run) {
				o.show(child)
				if test.pruned {
					r.candidates()
				}
			})
			if called != test.during {
				t.Errorf("it appears during the call: got %d more", called)
			}
			o.observe(readFact(child, "kopf-test"), true)
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
				r := newRun(o.Converger, Call{Owner: o.owner, Options: &o.options, Log: logr.Discard()}, o.begin(o.owner, &o.options, false))
				defer r.end()
				if err = r.settleDoubts(t.Context()); err == nil {
					err = r.prune(t.Context())
				}
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

// The step of a wanted child finds out what has become of its creation.
func TestAWantedChildWhoseCreationWasNotAnsweredIsNotRead(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	r := newRun(o.Converger, Call{Owner: o.owner, Options: &o.options, Log: logr.Discard()}, o.begin(o.owner, &o.options, false))
	defer r.end()
	one, two := Key{Namespace: "ns", Name: "one"}, Key{Namespace: "ns", Name: "two"}
	for _, key := range []Key{one, two} {
		o.doubt(r.state, key, configMaps)
	}
	r.keys = map[Key]bool{one: true}
	if err := r.settleDoubts(t.Context()); err != nil || !slices.Equal(o.requests, []string{"get two"}) {
		t.Errorf("got the requests %q and the error %v", o.requests, err)
	}
	if o.note(r.state, &fact{Key: one}); r.state.doubtful != nil {
		t.Errorf("got %v", r.state.doubtful)
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
