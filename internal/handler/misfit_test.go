package handler_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestMisfitsNameTheField(t *testing.T) {
	volume := func(size any) m {
		return m{"metadata": m{"name": "one"}, "spec": m{"capacity": m{"memory": "1Gi", "storage": size}}}
	}
	tests := map[string]struct {
		into any
		raw  m
		want string
	}{
		"a type that decodes itself": {&corev1.PersistentVolume{}, volume("abc"), "spec.capacity.storage"},
		"a plain type":               {&corev1.Pod{}, m{"spec": m{"hostNetwork": "yes"}}, "spec.hostNetwork"},
		"an item of a list":          {&corev1.Pod{}, m{"spec": m{"containers": []any{m{"name": "a"}, m{"name": 1}}}}, "spec.containers[1].name"},
		"a whole list":               {&corev1.Pod{}, m{"spec": m{"containers": "none"}}, "spec.containers"},
		"metadata":                   {&corev1.Pod{}, m{"metadata": m{"labels": []any{}}}, "metadata.labels"},
		"a key with a dot":           {&corev1.Pod{}, m{"metadata": m{"labels": m{"a.b": 1}}}, "metadata.labels.a.b"},
		"it fits":                    {&corev1.PersistentVolume{}, volume("2Gi"), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := handler.DecodeObject(test.raw, test.into)
			misfit := handler.AsMisfit(err)
			switch {
			case test.want == "" && err != nil, test.want != "" && misfit == nil:
				t.Errorf("got %v", err)
			case misfit != nil && misfit.Field != test.want:
				t.Errorf("got the field %q of %v, want %q", misfit.Field, err, test.want)
			}
		})
	}
}

func TestMisfitsSayWhatDoesNotFit(t *testing.T) {
	problem := errors.New("a text is no number")
	for want, err := range map[string]*handler.MisfitError{
		"the object does not fit the Go type *v1.Pod in spec.size: a text is no number":                     {Type: "*v1.Pod", Field: "spec.size", Err: problem},
		"the object does not fit the Go type *v1.Pod: a text is no number":                                  {Type: "*v1.Pod", Err: problem},
		"the former state of the object does not fit the Go type *v1.Pod in spec.size: a text is no number": {Type: "*v1.Pod", Field: "spec.size", Former: true, Err: problem},
	} {
		if err.Error() != want || !errors.Is(err, problem) {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

// declaredPods returns a deletion handler of pods.
func declaredPods(t *testing.T, options ...handler.ChangeOption) *handler.Declaration {
	t.Helper()
	d, err := handler.Delete(kex, typedOf(&corev1.Pod{}, doNothing), options...)
	return declared(t, d, err)
}

func TestDeclarationsKnowWhetherAnObjectFits(t *testing.T) {
	agree := handler.WhenDecoded(&corev1.Pod{}, func(*handler.Call) (bool, error) { return true, nil })
	untyped, err := handler.Delete(kex, change(doNothing))
	filtered, filteredErr := handler.Delete(kex, change(doNothing), agree)
	tests := map[string]struct {
		d     *handler.Declaration
		typed bool
	}{
		"without a type":        {declared(t, untyped, err), false},
		"of a type":             {declaredPods(t), true},
		"with a typed filter":   {declared(t, filtered, filteredErr), true},
		"of a type, and filter": {declaredPods(t, agree), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if misfit := test.d.Misfit(occasion(cause.Delete, nil, m{"spec": "text"})); (misfit != nil) != test.typed {
				t.Errorf("got %v", misfit)
			}
			if misfit := test.d.Misfit(occasion(cause.Delete, nil, m{"spec": m{}})); misfit != nil {
				t.Errorf("got %v for an object that fits", misfit)
			}
			sub := test.d.Under(test.d)
			if misfit := sub.Misfit(occasion(cause.Delete, nil, m{"spec": "text"})); (misfit != nil) != test.typed {
				t.Errorf("got %v from a sub-handler", misfit)
			}
		})
	}
}

func TestOnlyHandlersThatAskForItAreCalledForMisfits(t *testing.T) {
	for name, test := range map[string]struct {
		options []handler.ChangeOption
		misfit  bool
	}{
		"by default":   {nil, false},
		"released":     {[]handler.ChangeOption{handler.OnMisfit(handler.Release)}, false},
		"call untyped": {[]handler.ChangeOption{handler.OnMisfit(handler.CallUntyped)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var seen error
			look := func(_ context.Context, c *handler.Call) error {
				if misfit := c.Misfit(); misfit != nil {
					seen = misfit
				}
				return nil
			}
			d, err := handler.Delete(kex, typedOf(&corev1.Pod{}, look), append(test.options, handler.ID("look"))...)
			c := handler.NewChange(declared(t, d, err), handler.CallContext{Body: object.NewBody(m{"spec": "text"})}, handler.Attempt{}, nil, cause.Delete,
				func() *handler.Cause { return &handler.Cause{} })
			if _, err := d.Call(t.Context(), c); err != nil || (seen != nil) != test.misfit {
				t.Errorf("got %v, the handler saw %v", err, seen)
			}
		})
	}
}
