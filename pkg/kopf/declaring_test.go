package kopf

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func createFn(context.Context, *Change) error { return nil }

func watchFn(context.Context, *WatchEvent) error { return nil }

func daemonFn(context.Context, *Task) error { return nil }

func timerFn(context.Context, *Tick) error { return nil }

func indexFn(context.Context, *Indexed) (map[string]int, error) { return nil, nil }

func daemonPod(context.Context, *corev1.Pod, *Task) error { return nil }

func timerPod(context.Context, *corev1.Pod, *Tick) error { return nil }

func indexPod(context.Context, *corev1.Pod, *Indexed) (map[string]int, error) { return nil, nil }

func admitFn(context.Context, *Admission) error { return nil }

func admitPod(context.Context, *corev1.Pod, *Admission) error { return nil }

func createPod(context.Context, *corev1.Pod, *Change) error { return nil }

func watchPod(context.Context, *corev1.Pod, *WatchEvent) error { return nil }

// declared returns the handlers of a registry as kind, id, and selector.
func declared(t *testing.T, r *Registry) []string {
	t.Helper()
	handlers, err := r.handlers.Handlers(clientgoscheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, d := range handlers {
		list = append(list, fmt.Sprintf("%s %s of %s", d.Kind, d.ID, d.Selector))
	}
	return list
}

// withDefaultRegistry gives a test an empty default registry.
func withDefaultRegistry(t *testing.T) *Registry {
	t.Helper()
	before := DefaultRegistry
	t.Cleanup(func() { DefaultRegistry = before })
	DefaultRegistry = NewRegistry()
	return DefaultRegistry
}

// declarations returns all ways to declare a handler.
func declarations(r *Registry) map[string]struct {
	declare func(sel Selector)
	want    string
} {
	typed := For[*corev1.Pod](r)
	return map[string]struct {
		declare func(sel Selector)
		want    string
	}{
		"a creation, in the default registry":     {func(sel Selector) { OnCreate(sel, createFn) }, "create createFn of kex"},
		"an update, in the default registry":      {func(sel Selector) { OnUpdate(sel, createFn) }, "update createFn of kex"},
		"a deletion, in the default registry":     {func(sel Selector) { OnDelete(sel, createFn) }, "delete createFn of kex"},
		"a resuming, in the default registry":     {func(sel Selector) { OnResume(sel, createFn) }, "resume createFn of kex"},
		"a field, in the default registry":        {func(sel Selector) { OnField(sel, "spec.size", createFn) }, "field createFn/spec.size of kex"},
		"an event, in the default registry":       {func(sel Selector) { OnEvent(sel, watchFn) }, "event watchFn of kex"},
		"a creation":                              {func(sel Selector) { r.OnCreate(sel, createFn) }, "create createFn of kex"},
		"an update":                               {func(sel Selector) { r.OnUpdate(sel, createFn) }, "update createFn of kex"},
		"a deletion":                              {func(sel Selector) { r.OnDelete(sel, createFn) }, "delete createFn of kex"},
		"a resuming":                              {func(sel Selector) { r.OnResume(sel, createFn) }, "resume createFn of kex"},
		"a field":                                 {func(sel Selector) { r.OnField(sel, "spec.size", createFn) }, "field createFn/spec.size of kex"},
		"an event":                                {func(sel Selector) { r.OnEvent(sel, watchFn) }, "event watchFn of kex"},
		"a typed creation":                        {func(Selector) { typed.OnCreate(createPod) }, "create createPod of Pod.v1"},
		"a typed update":                          {func(Selector) { typed.OnUpdate(createPod) }, "update createPod of Pod.v1"},
		"a typed deletion":                        {func(Selector) { typed.OnDelete(createPod) }, "delete createPod of Pod.v1"},
		"a typed resuming":                        {func(Selector) { typed.OnResume(createPod) }, "resume createPod of Pod.v1"},
		"a typed field":                           {func(Selector) { typed.OnField("spec.nodeName", createPod) }, "field createPod/spec.nodeName of Pod.v1"},
		"a typed event":                           {func(Selector) { typed.OnEvent(watchPod) }, "event watchPod of Pod.v1"},
		"a daemon, in the default registry":       {func(sel Selector) { Daemon(sel, daemonFn) }, "daemon daemonFn of kex"},
		"a timer, in the default registry":        {func(sel Selector) { Timer(sel, timerFn) }, "timer timerFn of kex"},
		"an index, in the default registry":       {func(sel Selector) { NewIndex(DefaultRegistry, sel, indexFn) }, "index indexFn of kex"},
		"a daemon":                                {func(sel Selector) { r.Daemon(sel, daemonFn) }, "daemon daemonFn of kex"},
		"a timer":                                 {func(sel Selector) { r.Timer(sel, timerFn) }, "timer timerFn of kex"},
		"an index":                                {func(sel Selector) { NewIndex(r, sel, indexFn) }, "index indexFn of kex"},
		"a typed daemon":                          {func(Selector) { typed.Daemon(daemonPod) }, "daemon daemonPod of Pod.v1"},
		"a typed timer":                           {func(Selector) { typed.Timer(timerPod) }, "timer timerPod of Pod.v1"},
		"a filled index, in the default registry": {func(sel Selector) { FillIndex(DefaultRegistry, &Index[string, int]{}, sel, indexFn) }, "index indexFn of kex"},
		"a filled index":                          {func(sel Selector) { FillIndex(r, &Index[string, int]{}, sel, indexFn) }, "index indexFn of kex"},
		"a typed filled index":                    {func(Selector) { FillIndexOf(typed, &Index[string, int]{}, indexPod) }, "index indexPod of Pod.v1"},
		"a typed index":                           {func(Selector) { NewIndexOf(typed, indexPod) }, "index indexPod of Pod.v1"},
		"a validation, in the default registry":   {func(sel Selector) { OnValidate(sel, admitFn) }, "validate admitFn of kex"},
		"a mutation, in the default registry":     {func(sel Selector) { OnMutate(sel, admitFn) }, "mutate admitFn of kex"},
		"a validation":                            {func(sel Selector) { r.OnValidate(sel, admitFn) }, "validate admitFn of kex"},
		"a mutation":                              {func(sel Selector) { r.OnMutate(sel, admitFn) }, "mutate admitFn of kex"},
		"a typed validation":                      {func(Selector) { typed.OnValidate(admitPod) }, "validate admitPod of Pod.v1"},
		"a typed mutation":                        {func(Selector) { typed.OnMutate(admitPod) }, "mutate admitPod of Pod.v1"},
		"typed, in the default registry":          {func(Selector) { For[*corev1.Pod](DefaultRegistry).OnCreate(createPod) }, "create createPod of Pod.v1"},
	}
}

func TestDeclarationsAreRegistered(t *testing.T) {
	for name := range declarations(NewRegistry()) {
		t.Run(name, func(t *testing.T) {
			r := withDefaultRegistry(t)
			test := declarations(r)[name]
			test.declare(Resource("kex"))
			if got := declared(t, r); len(got) != 1 || got[0] != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDeclarationInANilRegistryIsAMistake(t *testing.T) {
	none := (*Registry)(nil)
	mistakes := map[string]func(){
		"activities": func() { none.OnStartup(func(context.Context, *Startup) error { return nil }, ID("startup")) },
		"needs":      func() { none.Needs(Resource("pods"), "get") },
		"configure":  func() { none.Configure(func(*Settings) {}) },
		"conditions": func() { none.Conditions(Resource("kex")) },
	}
	for name, test := range declarations(nil) {
		if !strings.Contains(name, "default registry") {
			mistakes[name] = func() { test.declare(Resource("kex")) }
		}
	}
	for name, declare := range mistakes {
		t.Run(name, func(t *testing.T) {
			withDefaultRegistry(t)
			declare()
			for _, r := range []*Registry{nil, NewRegistry()} {
				_, err := NewOperator(Options{Registry: r})
				if err == nil || !strings.Contains(err.Error(), "kopf/declaring_test.go:") || !strings.Contains(err.Error(), "registry that is nil") {
					t.Errorf("got %v", err)
				}
			}
			if len(DefaultRegistry.declared().Activities()) > 0 || len(DefaultRegistry.declared().Needs()) > 0 {
				t.Error("it is declared in the default registry")
			}
		})
	}
}

// A nil registry is probably a variable that is not set yet. It must not become the default one.
func TestOperatorWithoutARegistryIsAMistake(t *testing.T) {
	r := withDefaultRegistry(t)
	r.OnCreate(Selector{}, createFn)
	for name, make := range map[string]func() error{
		"NewOperator": func() error { _, err := NewOperator(Options{}); return err },
		"Run":         func() error { return Run(t.Context(), Options{}) },
		"Add":         func() error { _, err := Add(nil, Options{}); return err },
	} {
		if err := make(); err == nil || !strings.Contains(err.Error(), "kopf.Options.Registry is nil") || strings.Contains(err.Error(), "createFn") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAdmissionHandlersWithoutAServerAreAMistake(t *testing.T) {
	r := NewRegistry()
	r.OnValidate(Resource("kex"), admitFn)
	if _, err := NewOperator(Options{Registry: r}); err == nil || !strings.Contains(err.Error(), "Settings.Admission.Server") || !strings.Contains(err.Error(), "kopf/declaring_test.go:") {
		t.Errorf("got %v", err)
	}
	r.OnStartup(func(context.Context, *Startup) error { return nil }, ID("it-can-set-the-server"))
	if _, err := NewOperator(Options{Registry: r}); err != nil {
		t.Error(err)
	}
}

// Everything that is known before a connection is reported, at once.
func TestMistakesAreReportedTogether(t *testing.T) {
	r := NewRegistry()
	r.OnValidate(Resource("kex"), admitFn)
	r.Ensure(Resource("kex"), func(context.Context, *Change) ([]client.Object, error) { return nil, nil }, ID("children"))
	r.OnCreate(Resource("kex"), createFn, Timeout(-1))
	broken := Settings{}
	broken.Execution.Workers = -1
	_, err := NewOperator(Options{Registry: r, Settings: broken})
	for _, want := range []string{"Settings.Admission.Server", "set settings.Name", "the timeout -1ns is negative", "Execution.Workers"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	drift := NewRegistry()
	drift.OnDrift(Resource("kex"), func(context.Context, *Drift) (Resolution, error) { return Resolution{}, nil }, ID("drift"))
	if _, err := NewOperator(Options{Registry: drift}); err == nil || !strings.Contains(err.Error(), "kopf.Ensure, which is not declared") {
		t.Errorf("got %v", err)
	}
}

// An error has the place of the mistake: the first line of code that is not of this project.
func TestAMistakeHasThePlaceOfItsDeclaration(t *testing.T) {
	for name := range declarations(NewRegistry()) {
		if strings.Contains(name, "typed") {
			continue // they have no selector that could be wrong; see below
		}
		t.Run(name, func(t *testing.T) {
			r := withDefaultRegistry(t)
			declarations(r)[name].declare(Resource("a", "b", "c", "d"))
			_, err := r.handlers.Handlers(clientgoscheme.Scheme)
			if err == nil || !strings.Contains(err.Error(), "kopf/declaring_test.go:") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestThePlaceIsTheExactLine(t *testing.T) {
	r := withDefaultRegistry(t)
	_, _, line, _ := runtime.Caller(0)
	OnCreate(Resource("kex"), createFn, Timeout(-1))
	r.OnUpdate(Resource("kex"), createFn, Timeout(-1))
	For[*corev1.Pod](r).OnCreate(createPod, Timeout(-1))
	For[*corev1.Pod](r).OnEvent(watchPod, ID(""))
	NewIndex(r, Resource("kex"), indexFn, Timeout(-1))
	NewIndexOf(For[*corev1.Pod](r), indexPod, Timeout(-1))
	Daemon(Resource("kex"), daemonFn, InitialDelay(-1))
	For[*corev1.Pod](r).Timer(timerPod, Interval(-1))
	_, err := r.handlers.Handlers(clientgoscheme.Scheme)
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for offset, want := range map[int]string{
		1: `the create handler "createFn": the timeout`, 2: `the update handler "createFn"`,
		3: `the create handler "createPod"`, 4: `the event handler "": its id is empty`,
		5: `the index handler "indexFn": the timeout`, 6: `the index handler "indexPod": the timeout`,
		7: `the daemon handler "daemonFn": the initial delay`, 8: `the timer handler "timerPod": the interval`,
	} {
		if want := fmt.Sprintf("kopf/declaring_test.go:%d: %s", line+offset, want); !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestRefusedTypedHandlers(t *testing.T) {
	tests := map[string]struct {
		declare func(r *Registry)
		want    string
	}{
		"no function":            {func(r *Registry) { For[*corev1.Pod](r).OnCreate(nil) }, "the function is nil"},
		"no function for events": {func(r *Registry) { For[*corev1.Pod](r).OnEvent(nil) }, "the function is nil"},
		"no daemon":              {func(r *Registry) { For[*corev1.Pod](r).Daemon(nil) }, `the daemon handler "": the function is nil`},
		"no timer":               {func(r *Registry) { For[*corev1.Pod](r).Timer(nil) }, `the timer handler "": the function is nil`},
		"no indexing function":   {func(r *Registry) { NewIndex[int, int](r, Resource("kex"), nil) }, `the index handler "": the function is nil`},
		"no typed indexing function": {
			func(r *Registry) { NewIndexOf[*corev1.Pod, int, int](For[*corev1.Pod](r), nil) }, `the index handler "": the function is nil`,
		},
		"no index to fill":        {func(r *Registry) { FillIndex(r, nil, Resource("kex"), indexFn) }, "there is no index to fill"},
		"no typed index to fill":  {func(r *Registry) { FillIndexOf(For[*corev1.Pod](r), nil, indexPod) }, "there is no index to fill"},
		"nothing to fill it with": {func(r *Registry) { FillIndex(r, NewIndex(r, Resource("kex"), indexFn), Resource("kex"), nil) }, "the function is nil"},
		"an index by a literal without an id": {func(r *Registry) {
			NewIndex(r, Resource("kex"), func(context.Context, *Indexed) (map[string]int, error) { return nil, nil })
		}, "add kopf.ID"},
		"two indices of one id": {func(r *Registry) {
			NewIndex(r, Resource("kex"), indexFn)
			NewIndex(r, Resource("kex"), indexFn)
		}, `the id "indexFn" is taken by another declaration of an index`},
		"an index of an interface": {
			func(r *Registry) {
				NewIndexOf(For[client.Object](r), func(context.Context, client.Object, *Indexed) (map[string]int, error) { return nil, nil }, ID("a"))
			}, "it has no resource",
		},
		"a literal without an id": {func(r *Registry) {
			For[*corev1.Pod](r).OnEvent(func(context.Context, *corev1.Pod, *WatchEvent) error { return nil })
		}, "add kopf.ID"},
		"an interface for a type": {
			func(r *Registry) {
				For[client.Object](r).OnCreate(func(context.Context, client.Object, *Change) error { return nil }, ID("a"))
			}, "it has no resource: specify one with kopf.Resource(...), or pass a pointer to a Go type to kopf.For",
		},
		"an interface for a type of events": {
			func(r *Registry) {
				For[client.Object](r).OnEvent(func(context.Context, client.Object, *WatchEvent) error { return nil }, ID("a"))
			}, "it has no resource",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewRegistry()
			test.declare(r)
			if _, err := r.handlers.Handlers(apiruntime.NewScheme()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

// One function can handle creations and resumptions, typed or not.
func TestOneFunctionCanHandleSeveralReasons(t *testing.T) {
	r := NewRegistry()
	r.OnCreate(Resource("kex"), createFn)
	r.OnResume(Resource("kex"), createFn)
	For[*corev1.Pod](r).OnCreate(createPod)
	For[*corev1.Pod](r).OnResume(createPod)
	if got := len(declared(t, r)); got != 4 {
		t.Errorf("got %d", got)
	}
}

func TestRegistriesShareNothing(t *testing.T) {
	withDefaultRegistry(t)
	one, two := NewRegistry(), &Registry{}
	one.OnCreate(Resource("kex"), createFn)
	if len(declared(t, one)) != 1 || len(declared(t, two)) != 0 || len(declared(t, DefaultRegistry)) != 0 {
		t.Error("a declaration has got into another registry")
	}
}
