package kopf

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// pod is one with a field that the Go type does not know.
func pod() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "one", "namespace": "ns", "uid": "u-1", "labels": map[string]any{"a": "b"}},
		"spec":     map[string]any{"nodeName": "n1", "fromTheFuture": int64(1)},
		"status":   map[string]any{"phase": "Running"},
	}
}

// calling calls a typed handler like the engine.
func calling(t *testing.T, raw map[string]any, old object.Essence, fn func(context.Context, *corev1.Pod, *Change) error) (*patch.Patch, error) {
	t.Helper()
	r := NewRegistry()
	For[*corev1.Pod](r).OnUpdate(fn, ID("fn"))
	handlers, err := r.handlers.Handlers(clientgoscheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	subject := handler.CallContext{Body: object.NewBody(raw), Patch: &patch.Patch{}}
	_, err = handlers[0].Call(t.Context(), handler.NewChange(handlers[0], subject, handler.Attempt{}, nil, cause.Update, func() *handler.Cause {
		return &handler.Cause{Reason: cause.Update, Old: old}
	}))
	return subject.Patch, err
}

type unknownValue struct{}

func (unknownValue) EqualTo(any) bool { return false }

func TestATypedChangeHasBothObjects(t *testing.T) {
	old := object.Essence{"metadata": map[string]any{"labels": map[string]any{"a": "old"}}, "spec": map[string]any{"nodeName": "n0"}}
	tests := map[string]struct {
		old  object.Essence
		node string // of the old object; empty: there is none
	}{
		"the object was handled before":       {old, "n0"},
		"it had no metadata of essence":       {object.Essence{"spec": map[string]any{"nodeName": "n0"}}, "n0"},
		"the object was never handled":        {nil, ""},
		"only hashes of the old one are kept": {object.Essence{"spec": map[string]any{"nodeName": unknownValue{}}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := calling(t, pod(), test.old, func(_ context.Context, p *corev1.Pod, c *Change) error {
				if p.Spec.NodeName != "n1" || p.Status.Phase != corev1.PodRunning || c.Name() != "one" {
					t.Errorf("got %+v", p)
				}
				before := &corev1.Pod{}
				known, err := c.DecodeOld(before)
				switch {
				case err != nil:
					t.Error(err)
				case test.node == "":
					if known {
						t.Errorf("got %+v", before)
					}
				case !known || before.Spec.NodeName != test.node || before.Name != "one" || before.Namespace != "ns" || before.UID != "u-1" || before.Status.Phase != "":
					t.Errorf("got %+v", before)
				case before.Kind != "Pod" || before.APIVersion != "v1":
					t.Errorf("got %+v", before.TypeMeta)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	if !reflect.DeepEqual(old["metadata"], map[string]any{"labels": map[string]any{"a": "old"}}) {
		t.Errorf("the essence became %v", old)
	}
}

// brokenPod has a text in place of its spec.
func brokenPod() map[string]any {
	broken := pod()
	broken["spec"] = "a text"
	return broken
}

// isMisfit reports whether the error is about the spec of a pod.
func isMisfit(err error) bool {
	misfit := handler.AsMisfit(err)
	return misfit != nil && misfit.Type == "*v1.Pod" && misfit.Field == "spec" && !misfit.Former
}

func TestAnObjectThatDoesNotFitItsTypeIsAMisfit(t *testing.T) {
	_, err := calling(t, brokenPod(), nil, func(context.Context, *corev1.Pod, *Change) error {
		t.Error("the handler was called")
		return nil
	})
	if !isMisfit(err) || handler.IsPermanent(err) {
		t.Errorf("got %v", err)
	}
}

// A correction of an object must reach its handlers, although the former state does not fit.
func TestTheFormerStateIsDecodedOnlyWhenItIsAskedFor(t *testing.T) {
	before := brokenPod()
	called := false
	if _, err := calling(t, pod(), before, func(context.Context, *corev1.Pod, *Change) error { called = true; return nil }); err != nil || !called {
		t.Errorf("got %v, called: %v", err, called)
	}
	_, err := calling(t, pod(), before, func(_ context.Context, _ *corev1.Pod, c *Change) error {
		_, err := c.DecodeOld(&corev1.Pod{})
		return err
	})
	if misfit := handler.AsMisfit(err); misfit == nil || !misfit.Former || !strings.Contains(err.Error(), "the former state of the object does not fit") {
		t.Errorf("got %v", err)
	}
}

func TestADeletionHandlerCanBeCalledWithoutTheObject(t *testing.T) {
	for name, test := range map[string]struct {
		raw  map[string]any
		fits bool
	}{"it fits": {pod(), true}, "it does not fit": {brokenPod(), false}} {
		t.Run(name, func(t *testing.T) {
			r, called := NewRegistry(), false
			For[*corev1.Pod](r).OnDelete(func(_ context.Context, p *corev1.Pod, c *Change) error {
				called = true
				if (p != nil) != test.fits || (c.Misfit() == nil) != test.fits || c.Name() != "one" {
					t.Errorf("got %+v, %v", p, c.Misfit())
				}
				return nil
			}, ID("fn"), CallUntyped(), WhenObject(func(*corev1.Pod) bool { return true }))
			subject := handler.CallContext{Body: object.NewBody(test.raw), Patch: &patch.Patch{}}
			d := only(t, r)
			_, err := d.Call(t.Context(), handler.NewChange(d, subject, handler.Attempt{}, nil, cause.Delete, func() *handler.Cause { return &handler.Cause{} }))
			if err != nil || !called {
				t.Errorf("got %v, called: %v", err, called)
			}
		})
	}
}

// Only what a typed handler changes is written: a round trip through the Go type must not
// remove fields of newer types.
func TestUpdateKeepsWhatTheTypeDoesNotKnow(t *testing.T) {
	p, err := calling(t, pod(), nil, func(_ context.Context, _ *corev1.Pod, c *Change) error {
		Update(c, func(p *corev1.Pod) error {
			p.Labels["c"] = "d"
			delete(p.Labels, "a")
			p.Spec.NodeName = "n2"
			return nil
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Resolve(pod())
	want := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a": nil, "c": "d"}},
		"spec":     map[string]any{"nodeName": "n2"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestUpdateReportsItsFailures(t *testing.T) {
	refusal := errors.New("not this one")
	p, err := calling(t, pod(), nil, func(_ context.Context, _ *corev1.Pod, c *Change) error {
		Update(c, func(*corev1.Pod) error { return refusal })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Resolve(pod()); !errors.Is(err, refusal) {
		t.Errorf("got %v, %v", got, err)
	}
	broken := pod()
	broken["spec"] = "a text"
	if got, err := p.Resolve(broken); err == nil || !strings.Contains(err.Error(), "the object does not fit *v1.Pod") {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestUpdateNeedsTheTypeOfTheObject(t *testing.T) {
	inScheme := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	type partOfPod struct{ corev1.Pod }
	for name, test := range map[string]struct {
		client client.Client
		update func(*Change)
		want   string // empty: no error
	}{
		"its type": {inScheme, func(c *Change) {
			Update(c, func(p *corev1.Pod) error { p.Spec.NodeName = "n2"; return nil })
		}, ""},
		"another type": {inScheme, func(c *Change) {
			Update(c, func(m *corev1.ConfigMap) error { m.Data = map[string]string{"a": "b"}; return nil })
		}, "kopf.Update was called with a function of *v1.ConfigMap, which is the type of ConfigMap, but the object is a Pod: use the type of the object"},
		"another type, without a client": {nil, func(c *Change) {
			Update(c, func(m *corev1.ConfigMap) error { m.Labels = map[string]string{"a": "c"}; return nil })
		}, ""},
		"a type that the scheme does not have": {inScheme, func(c *Change) {
			Update(c, func(p *partOfPod) error { p.Labels["a"] = "c"; return nil })
		}, ""},
		"an interface": {inScheme, func(c *Change) {
			Update(c, func(client.Object) error { return nil })
		}, "kopf.Update was called with a function of an interface: use the type of the object, a pointer such as *v1.Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			subject := handler.CallContext{Body: object.NewBody(pod()), Patch: &patch.Patch{}, Client: test.client}
			test.update(changeOf(handler.NewCall(&handler.Declaration{}, subject, handler.Attempt{})))
			got, err := subject.Patch.Resolve(pod())
			switch {
			case test.want == "" && (err != nil || len(got) == 0):
				t.Errorf("got %v, %v", got, err)
			case test.want != "" && (err == nil || !strings.HasSuffix(err.Error(), test.want) || !handler.IsPermanent(err)):
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestATypedEventHasItsObject(t *testing.T) {
	r := NewRegistry()
	For[*corev1.Pod](r).OnEvent(func(_ context.Context, p *corev1.Pod, e *WatchEvent) error {
		if p.Spec.NodeName != "n1" || e.Type() != watch.Modified || e.Name() != "one" {
			t.Errorf("got %+v", e)
		}
		return errNoNode
	}, ID("fn"))
	handlers, err := r.handlers.Handlers(clientgoscheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	event := func(raw map[string]any) *handler.Call {
		c := handler.NewCall(handlers[0], handler.CallContext{Body: object.NewBody(raw)}, handler.Attempt{})
		c.Event = watch.Modified
		return c
	}
	if _, err := handlers[0].Call(t.Context(), event(pod())); !errors.Is(err, errNoNode) {
		t.Errorf("got %v", err)
	}
	if _, err := handlers[0].Call(t.Context(), event(map[string]any{"spec": "a text"})); !isMisfit(err) {
		t.Errorf("got %v", err)
	}
}

var errNoNode = errors.New("no node")
