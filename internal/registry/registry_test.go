package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

var (
	kex  = selector.New("kopf.dev", "v1", "kopfexamples")
	pods = selector.New("v1", "pods")
)

func one(context.Context, *handler.Call) error { return nil }

func two(context.Context, *handler.Call) error { return nil }

func change(fn func(context.Context, *handler.Call) error) handler.Function {
	return handlertest.Function(fn)
}

func ids(handlers registry.Handlers) string {
	var list []string
	for _, d := range handlers {
		list = append(list, string(d.Kind)+":"+d.ID)
	}
	return strings.Join(list, " ")
}

func handlers(t testing.TB, r *registry.Registry) registry.Handlers {
	t.Helper()
	found, err := r.Handlers(clientgoscheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestHandlersAreInTheOrderOfTheirDeclaration(t *testing.T) {
	var r registry.Registry
	r.Add(handler.Update(kex, change(two)))
	r.Add(handler.Create(pods, change(one)))
	before := handlers(t, &r)
	r.Add(handler.Create(kex, change(two)))
	if got := ids(handlers(t, &r)); got != "update:two create:one create:two" {
		t.Errorf("got %s", got)
	}
	if got := ids(before); got != "update:two create:one" {
		t.Errorf("a later declaration made %s", got)
	}
}

func TestTypedHandlersAreBoundToTheScheme(t *testing.T) {
	var r registry.Registry
	r.Add(handler.Create(selector.Selector{}, handlertest.Typed(&corev1.Pod{}, one)))
	if got := handlers(t, &r)[0].Selector.String(); got != "Pod.v1" {
		t.Errorf("got %s", got)
	}
	if _, err := r.Handlers(runtime.NewScheme()); err == nil || !strings.Contains(err.Error(), "the type *v1.Pod is not in the scheme") {
		t.Errorf("got %v", err)
	}
}

func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	var r registry.Registry
	r.Add(handler.Create(kex, change(one), handler.Timeout(-1)))
	r.Add(handler.Create(kex, change(one), handler.ID("a")))
	r.Add(handler.Create(kex, change(two), handler.ID("a")))
	r.Add(handler.Create(selector.Selector{}, handlertest.Typed(&corev1.Pod{}, one)))
	r.Add(nil, errors.New("something else"))
	found, err := r.Handlers(runtime.NewScheme())
	if len(found) != 2 || err == nil { // those without a mistake
		t.Fatalf("got %v, %v", found, err)
	}
	for _, want := range []string{
		"the declarations of handlers are invalid:\n",
		"registry/registry_test.go:", "the timeout -1ns is negative", "something else", "is not in the scheme",
		`the id "a" is taken by another function at registry/registry_test.go:`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

type creator struct{ name string }

func (c *creator) create(context.Context, *handler.Call) error { return nil }

func TestConflicts(t *testing.T) {
	x, y := &creator{"x"}, &creator{"y"}
	tests := map[string]struct {
		declare func(r *registry.Registry)
		want    string // nothing: no conflict
	}{
		"one function for several things": {func(r *registry.Registry) {
			r.Add(handler.Create(kex, change(one)))
			r.Add(handler.Resume(kex, change(one)))
			r.Add(handler.Create(kex, change(one), handler.Param(1)))
		}, ""},
		"one function for two fields": {func(r *registry.Registry) {
			r.Add(handler.ForField(kex, []string{"spec"}, change(one)))
			r.Add(handler.ForField(kex, []string{"status"}, change(one)))
		}, ""},
		"a method of one object": {func(r *registry.Registry) {
			r.Add(handler.Create(kex, change(x.create)))
			r.Add(handler.Resume(kex, change(x.create)))
		}, ""},
		"one id for different resources": {func(r *registry.Registry) {
			r.Add(handler.Create(kex, change(one), handler.ID("a")))
			r.Add(handler.Create(pods, change(two), handler.ID("a")))
		}, ""},
		"one id for two functions": {func(r *registry.Registry) {
			r.Add(handler.Create(kex, change(one), handler.ID("a")))
			r.Add(handler.Update(kex, change(two), handler.ID("a")))
		}, `the id "a" is taken by another function at registry/registry_test.go:`},
		"a method of two objects": {func(r *registry.Registry) {
			r.Add(handler.Create(kex, change(x.create)))
			r.Add(handler.Create(kex, change(y.create)))
		}, `by the same function with another receiver or other variables: set another kopf.ID for one of them, or store the function in a variable`},
		"one limit for several declarations": {func(r *registry.Registry) {
			r.Add(handler.Create(kex, change(one), handler.Limit(2)))
			r.Add(handler.Resume(kex, change(one)))
			r.Add(handler.Update(kex, change(one), handler.Limit(2)))
		}, ""},
		"one limit for each field": {func(r *registry.Registry) {
			r.Add(handler.ForField(kex, []string{"spec"}, change(one), handler.Limit(2)))
			r.Add(handler.ForField(kex, []string{"status"}, change(one), handler.Limit(3)))
		}, ""},
		"two limits for one handler": {func(r *registry.Registry) {
			r.Add(handler.Resume(kex, change(one)))
			r.Add(handler.Create(kex, change(one), handler.Limit(2)))
			r.Add(handler.Update(kex, change(one), handler.Limit(3)))
		}, `the handler "one" has kopf.Limit(3) here, and kopf.Limit(2) at registry/registry_test.go:`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var r registry.Registry
			test.declare(&r)
			_, err := r.Handlers(runtime.NewScheme())
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

// Two selectors may turn out to mean the same resource; then, a conflict is found
// when the resources are known.
func TestConflictsOfDifferentSelectors(t *testing.T) {
	var r registry.Registry
	r.Add(handler.Create(kex, change(one), handler.ID("a")))
	r.Add(handler.Create(selector.New("kex"), change(two), handler.ID("a")))
	if err := handlers(t, &r).Conflicts(); err == nil || strings.Count(err.Error(), "registry_test.go:") != 2 {
		t.Errorf("got %v", err)
	}
}

// children is a function of Ensure.
var children = handlertest.Returning(func(context.Context, *handler.Call) ([]client.Object, error) { return nil, nil })

// Ensure declares one handler, of which the library makes several.
func TestEnsureIsOneHandler(t *testing.T) {
	var r registry.Registry
	ensure := func(sel selector.Selector) {
		declarations, err := handler.Ensure(sel, children, handler.ID("children"))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range declarations {
			r.Add(d, nil)
		}
	}
	ensure(kex)
	r.Add(handler.Create(kex, change(one)))
	r.Add(handler.Update(kex, change(one)))
	r.Add(handler.ForConditions(kex, nil))
	if got := handlers(t, &r).Count(); got != 3 {
		t.Errorf("got %d handlers", got)
	}
	ensure(selector.New("kex"))
	err := handlers(t, &r).Conflicts()
	if err == nil || strings.Count(err.Error(), `the id "children" is taken by another declaration of kopf.Ensure at`) != 1 || strings.Contains(err.Error(), "restore") {
		t.Errorf("got %v", err)
	}
}

func TestSelectorsAreListedOnce(t *testing.T) {
	var r registry.Registry
	r.Add(handler.Create(pods, change(one)))
	r.Add(handler.Create(kex, change(one)))
	r.Add(handler.Update(pods, change(two)))
	if got := fmt.Sprint(handlers(t, &r).Selectors()); got != "[v1/pods kopf.dev/v1/kopfexamples]" {
		t.Errorf("got %s", got)
	}
}

func labeled(key, value string) *handler.Cause {
	body := map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}}
	return &handler.Cause{Reason: cause.Create, Initial: true, New: body, CallContext: handler.CallContext{Body: object.NewBody(body)}}
}

func TestSelectedHandlersAreCalledOnce(t *testing.T) {
	type filters = map[string]handler.Matcher
	var r registry.Registry
	r.Add(handler.Create(kex, change(one), handler.Labels(filters{"a": handler.Present()})))
	r.Add(handler.Create(kex, change(one), handler.Labels(filters{"b": handler.Present()})))
	r.Add(handler.Resume(kex, change(one)))
	r.Add(handler.Create(kex, change(one), handler.ID("another"), handler.Labels(filters{"b": handler.Present()})))
	r.Add(handler.Update(kex, change(two)))
	tests := map[string]struct {
		label string
		want  string
	}{
		"the first declaration that fits": {"a", "create:one"},
		"the second, if the first is not": {"b", "create:one create:another"},
		"the last, if the others are not": {"c", "resume:one"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ids(handlers(t, &r).Selected(labeled(test.label, "x"))); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A finished resumption must not count as the handling of a change.
func TestDeclarationsForChangesComeBeforeThoseForResuming(t *testing.T) {
	var r registry.Registry
	r.Add(handler.Resume(kex, change(one)))
	r.Add(handler.Update(kex, change(two)))
	r.Add(handler.Resume(kex, change(one), handler.Param(2)))
	r.Add(handler.Update(kex, change(one)))
	all := handlers(t, &r)
	for reason, want := range map[cause.Reason]string{cause.Update: "update:one update:two", cause.Resume: "resume:one"} {
		observed := labeled("a", "x")
		observed.Reason, observed.Initial = reason, true
		if got := ids(all.Selected(observed)); got != want {
			t.Errorf("%s: got %q, want %q", reason, got, want)
		}
	}
}

func TestScopeAndDeletion(t *testing.T) {
	type filters = map[string]handler.Matcher
	var r registry.Registry
	r.Add(handler.Create(kex, change(one), handler.Labels(filters{"a": handler.Present()})))
	r.Add(handler.Delete(kex, change(two), handler.Labels(filters{"b": handler.Present()})))
	r.Add(handler.Delete(kex, change(one), handler.Labels(filters{"c": handler.Present()}), handler.Optional()))
	tests := map[string]struct {
		label         string
		inScope, held bool
	}{
		"of a creation handler":           {"a", true, false},
		"of a deletion handler":           {"b", true, true},
		"of an optional deletion handler": {"c", true, false},
		"of none":                         {"d", false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			all, occasion := handlers(t, &r), labeled(test.label, "x")
			if all.InScope(occasion) != test.inScope || all.HoldDeletion(occasion) != test.held {
				t.Errorf("got %v, %v", all.InScope(occasion), all.HoldDeletion(occasion))
			}
		})
	}
}

func TestRegistryIsSafeForConcurrentUse(t *testing.T) {
	var r registry.Registry
	var developers sync.WaitGroup
	for i := range 16 {
		developers.Go(func() {
			r.Add(handler.Create(kex, change(one), handler.ID(fmt.Sprintf("a%d", i))))
			_, _ = r.Handlers(runtime.NewScheme())
		})
	}
	developers.Wait()
	if got := len(handlers(t, &r)); got != 16 {
		t.Errorf("got %d", got)
	}
}

func ExampleRegistry() {
	var r registry.Registry
	r.Add(handler.Create(kex, change(one)))
	r.Add(handler.Resume(kex, change(one)))
	r.Add(handler.Create(kex, change(two)))
	all, err := r.Handlers(runtime.NewScheme())
	if err != nil {
		fmt.Println(err)
	}
	// The function that is declared twice is called once.
	for _, d := range all.Selected(labeled("app", "db")) {
		fmt.Println(d.Kind, d.ID)
	}
	// Output:
	// create one
	// create two
}

func admit(context.Context, *handler.Call) error { return nil }

func admission(fn func(context.Context, *handler.Call) error) handler.Function {
	return handlertest.Function(fn)
}

func TestAdmissionHandlersAreApartFromTheOthers(t *testing.T) {
	var r registry.Registry
	r.Add(handler.Create(kex, change(one), handler.ID("a")))
	r.Add(handler.Validate(kex, admission(admit), handler.ID("a")))
	r.Add(handler.Mutate(pods, admission(admit), handler.ID("b")))
	found := handlers(t, &r)
	if got := ids(found.Admission()); got != "validate:a mutate:b" {
		t.Errorf("got %s", got)
	}
	if got := ids(found.Watching()); got != "create:a" {
		t.Errorf("got %s", got)
	}
}

func TestAdmissionHandlersDoNotShareAPath(t *testing.T) {
	other := func(context.Context, *handler.Call) error { return nil }
	tests := map[string]struct {
		add  func(r *registry.Registry)
		says string
	}{
		"a validation and a mutation": {func(r *registry.Registry) {
			r.Add(handler.Validate(kex, admission(admit), handler.ID("a")))
			r.Add(handler.Mutate(kex, admission(admit), handler.ID("a")))
		}, "both would be called at the same path"},
		"of different resources": {func(r *registry.Registry) {
			r.Add(handler.Validate(kex, admission(admit), handler.ID("a")))
			r.Add(handler.Mutate(pods, admission(other), handler.ID("a")))
		}, "both would be called at the same path"},
		"two functions": {func(r *registry.Registry) {
			r.Add(handler.Validate(kex, admission(admit), handler.ID("a")))
			r.Add(handler.Validate(kex, admission(other), handler.ID("a")))
		}, "is taken by another function"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var r registry.Registry
			test.add(&r)
			_, err := r.Handlers(clientgoscheme.Scheme)
			if err == nil || strings.Count(err.Error(), "another kopf.ID") != 1 || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}
