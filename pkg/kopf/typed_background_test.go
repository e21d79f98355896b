package kopf

import (
	"context"
	"errors"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// only returns the only handler of a registry.
func only(t *testing.T, r *Registry) *handler.Declaration {
	t.Helper()
	handlers, err := r.handlers.Handlers(clientgoscheme.Scheme)
	if err != nil || len(handlers) != 1 {
		t.Fatalf("got %v, %v", handlers, err)
	}
	return handlers[0]
}

// calls calls the only handler of a registry.
func calls(t *testing.T, r *Registry, s handler.CallContext) error {
	t.Helper()
	d := only(t, r)
	_, err := d.Call(t.Context(), handler.NewCall(d, s, handler.Attempt{}))
	return err
}

// living is an object that changes while a handler runs.
type living struct{ raw map[string]any }

func (l *living) subject() handler.CallContext {
	return handler.CallContext{Live: func() *object.Body { return object.NewBody(l.raw) }, Patch: &patch.Patch{}}
}

func TestTypedHandlersInTheBackgroundSeeTheObjectAsItWasAndAsItIs(t *testing.T) {
	type looking interface {
		Decode(into any) error
		Patch() *patch.Patch
		Name() string
	}
	l := &living{}
	look := func(object *corev1.Pod, a looking) error {
		p := &corev1.Pod{}
		if err := a.Decode(p); err != nil || p.Spec.NodeName != "n1" || a.Name() != "one" {
			t.Errorf("got %+v, %v", p, err)
		}
		l.raw = map[string]any{"spec": map[string]any{"nodeName": "n2"}}
		if err := a.Decode(p); err != nil || p.Spec.NodeName != "n2" {
			t.Errorf("got %+v, %v", p, err)
		}
		l.raw = map[string]any{"spec": "a text"}
		if err := a.Decode(p); !isMisfit(err) {
			t.Errorf("got %v", err)
		}
		if object.Spec.NodeName != "n1" {
			t.Errorf("got %+v", object)
		}
		Update(a, func(p *corev1.Pod) error { p.Spec.NodeName = "n3"; return nil })
		return errNoNode
	}
	for name, call := range map[string]func(handler.CallContext) error{
		"a daemon": func(s handler.CallContext) error {
			r := NewRegistry()
			For[*corev1.Pod](r).Daemon(func(_ context.Context, p *corev1.Pod, task *Task) error { return look(p, task) }, ID("fn"))
			return calls(t, r, s)
		},
		"a timer": func(s handler.CallContext) error {
			r := NewRegistry()
			For[*corev1.Pod](r).Timer(func(_ context.Context, p *corev1.Pod, tick *Tick) error { return look(p, tick) }, ID("fn"))
			return calls(t, r, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l.raw = pod()
			s := l.subject()
			if err := call(s); !errors.Is(err, errNoNode) {
				t.Errorf("got %v", err)
			}
			got, err := s.Patch.Resolve(pod())
			if want := map[string]any{"spec": map[string]any{"nodeName": "n3"}}; err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
			l.raw = map[string]any{"spec": "a text"}
			if err := call(s); !isMisfit(err) {
				t.Errorf("got %v for an object that does not fit the type", err)
			}
		})
	}
}

// filling returns the result of the only indexing function of a registry.
func filling(t *testing.T, r *Registry, raw map[string]any) (any, error) {
	t.Helper()
	d := only(t, r)
	return d.Call(t.Context(), handler.NewCall(d, handler.CallContext{Body: object.NewBody(raw)}, handler.Attempt{}))
}

func TestIndicesTakeWhatTheirFunctionsReturn(t *testing.T) {
	tests := map[string]struct {
		values map[string]int
		err    error
		want   []int // under the key a, after another object has put in a 1, and this one a 2
	}{
		"other values":        {map[string]int{"a": 3}, nil, []int{1, 3}},
		"no values":           {map[string]int{}, nil, []int{1}},
		"nothing keeps them":  {nil, nil, []int{1, 2}},
		"an error keeps them": {nil, errNoNode, []int{1, 2}},
		"an error with a map": {map[string]int{"a": 3}, errNoNode, []int{1, 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewRegistry()
			x := NewIndex(r, Resource("pods"), func(context.Context, *Indexed) (map[string]int, error) { return test.values, test.err }, ID("fn"))
			table := only(t, r).Table
			one, two := object.Key{Resource: "1"}, object.Key{Resource: "2"}
			for owner, value := range map[object.Key]int{one: 1, two: 2} {
				if err := table.Replace(owner, map[string]int{"a": value}); err != nil {
					t.Fatal(err)
				}
			}
			values, err := filling(t, r, pod())
			if !errors.Is(err, test.err) {
				t.Errorf("got %v", err)
			}
			if values != nil {
				if err := table.Replace(two, values); err != nil {
					t.Error(err)
				}
			}
			got := map[int]bool{}
			for _, value := range x.Get("a") {
				got[value] = true
			}
			want := map[int]bool{}
			for _, value := range test.want {
				want[value] = true
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", x.Get("a"), test.want)
			}
		})
	}
}

func TestATypedIndexHasItsObject(t *testing.T) {
	r := NewRegistry()
	byNode := func(_ context.Context, p *corev1.Pod, i *Indexed) (map[string]string, error) {
		return map[string]string{p.Spec.NodeName: i.Name()}, nil
	}
	x := NewIndexOf(For[*corev1.Pod](r), byNode, ID("byNode"))
	values, err := filling(t, r, pod())
	if want := map[string]string{"n1": "one"}; err != nil || !reflect.DeepEqual(values, want) {
		t.Errorf("got %v, %v", values, err)
	}
	if err := only(t, r).Table.Replace(object.Key{}, values); err != nil || len(x.Get("n1")) != 1 {
		t.Errorf("got %v, %v", x.Get("n1"), err)
	}
	if values, err := filling(t, r, map[string]any{"spec": "a text"}); values != nil || !isMisfit(err) {
		t.Errorf("got %v, %v", values, err)
	}
}
