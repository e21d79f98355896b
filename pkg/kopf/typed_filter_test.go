package kopf

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func isOnFirstNode(p *corev1.Pod) bool { return p.Spec.NodeName == "n1" }

func TestWhenObjectIsAskedAboutTheDecodedObject(t *testing.T) {
	pods := Resource("pods")
	for name, declare := range map[string]func(*Registry){
		"a creation":  func(r *Registry) { r.OnCreate(pods, createFn, WhenObject(isOnFirstNode)) },
		"an update":   func(r *Registry) { r.OnUpdate(pods, createFn, WhenObject(isOnFirstNode)) },
		"a deletion":  func(r *Registry) { r.OnDelete(pods, createFn, WhenObject(isOnFirstNode)) },
		"a resuming":  func(r *Registry) { r.OnResume(pods, createFn, WhenObject(isOnFirstNode)) },
		"a field":     func(r *Registry) { r.OnField(pods, "spec", createFn, WhenObject(isOnFirstNode)) },
		"an event":    func(r *Registry) { r.OnEvent(pods, watchFn, WhenObject(isOnFirstNode)) },
		"a daemon":    func(r *Registry) { r.Daemon(pods, daemonFn, WhenObject(isOnFirstNode)) },
		"a timer":     func(r *Registry) { r.Timer(pods, timerFn, WhenObject(isOnFirstNode)) },
		"an index":    func(r *Registry) { NewIndex(r, pods, indexFn, WhenObject(isOnFirstNode)) },
		"a check":     func(r *Registry) { r.OnValidate(pods, admitFn, WhenObject(isOnFirstNode)) },
		"a typed one": func(r *Registry) { For[*corev1.Pod](r).OnCreate(createPod, WhenObject(isOnFirstNode)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRegistry()
			declare(r)
			d := only(t, r)
			for node, want := range map[string]bool{"n1": true, "n2": false} {
				if got := d.InScope(seen(podOn(node))); got != want {
					t.Errorf("got %v for the node %s", got, node)
				}
			}
			if !d.InScope(seen(podOn(1))) {
				t.Error("an object that does not fit the type is not in scope")
			}
		})
	}
}

func seen(body *object.Body) *handler.Cause {
	return &handler.Cause{CallContext: handler.CallContext{Body: body, Patch: &patch.Patch{}, Resource: podsResource()}, Review: &handler.Review{New: body}}
}

func podsResource() *selector.Resource {
	return &selector.Resource{Version: "v1", Plural: "pods", Kind: "Pod"}
}

func TestSeveralTypedPredicatesMustAllAgree(t *testing.T) {
	r := NewRegistry()
	never := func(*corev1.Pod) bool { return false }
	r.OnCreate(Resource("pods"), createFn, WhenObject(isOnFirstNode), WhenObject(never))
	if only(t, r).InScope(seen(podOn("n1"))) {
		t.Error("the object is in scope, although one predicate does not agree")
	}
}

// Handlers without a type say why they are not called, as typed ones do.
func TestAnObjectThatDoesNotFitWhenObjectIsAMisfit(t *testing.T) {
	pods, ctx := Resource("pods"), t.Context()
	for name, declare := range map[string]func(*Registry){
		"change": func(r *Registry) { r.OnCreate(pods, createFn, WhenObject(isOnFirstNode)) },
		"event":  func(r *Registry) { r.OnEvent(pods, watchFn, WhenObject(isOnFirstNode)) },
		"daemon": func(r *Registry) { r.Daemon(pods, daemonFn, WhenObject(isOnFirstNode)) },
		"timer":  func(r *Registry) { r.Timer(pods, timerFn, WhenObject(isOnFirstNode)) },
		"index":  func(r *Registry) { NewIndex(r, pods, indexFn, WhenObject(isOnFirstNode)) },
		"review": func(r *Registry) { r.OnValidate(pods, admitFn, WhenObject(isOnFirstNode)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRegistry()
			declare(r)
			d := only(t, r)
			_, err := d.Call(ctx, seen(podOn(1)).CallOf(d))
			if misfit := handler.AsMisfit(err); misfit == nil || misfit.Type != "*v1.Pod" || misfit.Field != "spec.nodeName" {
				t.Errorf("got %v", misfit)
			}
			if misfit := d.Misfit(seen(podOn(1))); misfit == nil || misfit.Field != "spec.nodeName" {
				t.Errorf("got %v", misfit)
			}
			if misfit := d.Misfit(seen(podOn("n1"))); misfit != nil {
				t.Errorf("got %v for an object that fits", misfit)
			}
		})
	}
}

// A review of the subresource "exec" has no pod.
func TestWhenObjectDoesNotDecodeOtherKinds(t *testing.T) {
	r, called := NewRegistry(), false
	r.OnValidate(Resource("pods"), func(context.Context, *Admission) error { called = true; return nil },
		ID("fn"), WhenObject(func(*corev1.Pod) bool { t.Error("the predicate was asked"); return false }))
	d := only(t, r)
	body := object.NewBody(fields{"apiVersion": "v1", "kind": "PodExecOptions", "container": "main"})
	review := seen(body)
	if !d.InScope(review) {
		t.Error("the review is not in scope")
	}
	if _, err := d.Call(t.Context(), review.CallOf(d)); err != nil || !called {
		t.Errorf("got %v, called: %v", err, called)
	}
}

func TestMistakesInWhenObject(t *testing.T) {
	pods := Resource("pods")
	for name, test := range map[string]struct {
		declare func(*Registry)
		want    string
	}{
		"no predicate": {
			func(r *Registry) { r.OnCreate(pods, createFn, WhenObject[*corev1.Pod](nil)) }, "the function of WhenObject is nil",
		},
		"no type": {
			func(r *Registry) { r.OnCreate(pods, createFn, WhenObject(func(client.Object) bool { return true })) },
			"WhenObject requires a pointer to a Go type, such as *corev1.Pod",
		},
		"another type": {
			func(r *Registry) {
				For[*corev1.Node](r).OnCreate(func(context.Context, *corev1.Node, *Change) error { return nil }, ID("fn"), WhenObject(isOnFirstNode))
			},
			"WhenObject is for objects of the type *v1.Pod, but the handler is for *v1.Node",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRegistry()
			test.declare(r)
			_, err := r.handlers.Handlers(clientgoscheme.Scheme)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "typed_filter_test.go:") {
				t.Errorf("got %v, want %q and the place", err, test.want)
			}
		})
	}
}
