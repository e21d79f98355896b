package handler_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestInvalidOptionsAreRejected(t *testing.T) {
	broken := handler.Equal(make(chan int))
	tests := map[string]struct {
		options []handler.ChangeOption
		want    []string
	}{
		"an empty id": {
			[]handler.ChangeOption{handler.ID("")}, []string{"its id is empty"},
		},
		"an id with a space": {
			[]handler.ChangeOption{handler.ID("create it")}, []string{`its progress cannot be stored under the id "create it"`, "ASCII letter or digit"},
		},
		"an id with a letter that annotations cannot have": {
			[]handler.ChangeOption{handler.ID("größe")}, []string{`under the id "größe"`},
		},
		"an id beginning with an underscore": {
			[]handler.ChangeOption{handler.ID("_create")}, []string{`under the id "_create"`},
		},
		"an id with a line break": {
			[]handler.ChangeOption{handler.ID("a\n")}, []string{`under the id "a\n"`},
		},
		"an empty field": {
			[]handler.ChangeOption{handler.Field("")}, []string{`field "" has an empty part: write it as "spec.field"`},
		},
		"a field with an empty part": {
			[]handler.ChangeOption{handler.Field("spec..size")}, []string{`field "spec..size" has an empty part`},
		},
		"an empty key among several": {
			[]handler.ChangeOption{handler.Field("metadata", "labels", "")}, []string{`the field ["metadata" "labels" ""] has an empty part`},
		},
		"a field without keys": {
			[]handler.ChangeOption{handler.Field()}, []string{"the field is empty"},
		},
		"a field of the metadata that no object has": {
			[]handler.ChangeOption{handler.Field("metadata.lables.app")}, []string{`objects have no field "metadata.lables.app": did you mean "metadata.labels.app"?`},
		},
		"two fields": {
			[]handler.ChangeOption{handler.Field("spec"), handler.Field("status")}, []string{"it has two fields: declare the handler once for each of them"},
		},
		"a value without a field": {
			[]handler.ChangeOption{handler.Value(handler.Present())}, []string{"filter by the value of a field: add kopf.Field(...)"},
		},
		"an old value without a field": {
			[]handler.ChangeOption{handler.ValueBefore(handler.Present())}, []string{"add kopf.Field(...)"},
		},
		"a new value without a field": {
			[]handler.ChangeOption{handler.ValueAfter(handler.Present())}, []string{"add kopf.Field(...)"},
		},
		"a value and an old value": {
			[]handler.ChangeOption{handler.Field("spec"), handler.Value(handler.Present()), handler.ValueBefore(handler.Absent())},
			[]string{"Value cannot be combined with ValueBefore or ValueAfter"},
		},
		"a value and a new value": {
			[]handler.ChangeOption{handler.Field("spec"), handler.Value(handler.Present()), handler.ValueAfter(handler.Absent())},
			[]string{"Value cannot be combined with ValueBefore or ValueAfter"},
		},
		"a value that is not JSON": {
			[]handler.ChangeOption{handler.Field("spec"), handler.Value(broken)}, []string{"a value of type chan int cannot be expressed as JSON"},
		},
		"a missing value callback": {
			[]handler.ChangeOption{handler.Field("spec"), handler.ValueBefore(matchFuncOf(nil))}, []string{"MatchFunc has no function"},
		},
		"a combination with an invalid matcher": {
			[]handler.ChangeOption{handler.Field("spec"), handler.ValueAfter(handler.None(handler.Any(handler.Equal(1), broken)))}, []string{"of type chan int"},
		},
		"a combination with an empty matcher": {
			[]handler.ChangeOption{handler.Field("spec"), handler.Value(handler.All(handler.Present(), handler.Matcher{}))},
			[]string{"one of the combined matchers is empty"},
		},
		"an empty label": {
			[]handler.ChangeOption{handler.Labels(map[string]handler.Matcher{"": handler.Present()})}, []string{"a filter has an empty label"},
		},
		"an empty label filter": {
			[]handler.ChangeOption{handler.Labels(map[string]handler.Matcher{"a": {}})},
			[]string{`the filter of the label "a" is empty: use kopf.Present(), kopf.Absent(), or kopf.Equal(...)`},
		},
		"an invalid label filter": {
			[]handler.ChangeOption{handler.Labels(map[string]handler.Matcher{"a": broken})}, []string{`the filter of the label "a": a value of type chan int`},
		},
		"an empty annotation": {
			[]handler.ChangeOption{handler.Annotations(map[string]handler.Matcher{"": handler.Present()})}, []string{"a filter has an empty annotation"},
		},
		"an empty annotation filter": {
			[]handler.ChangeOption{handler.Annotations(map[string]handler.Matcher{"a": {}})}, []string{`the filter of the annotation "a" is empty`},
		},
		"no predicate": {
			[]handler.ChangeOption{whenOf(nil)}, []string{"the predicate of When is nil"},
		},
		"a negative timeout": {
			[]handler.ChangeOption{handler.Timeout(-time.Second)}, []string{"the timeout -1s is negative"},
		},
		"no attempt": {
			[]handler.ChangeOption{handler.Retries(0)}, []string{"kopf.Retries(0) allows no attempt", "at least 1"},
		},
		"a negative number of attempts": {
			[]handler.ChangeOption{handler.Retries(-1)}, []string{"kopf.Retries(-1) allows no attempt"},
		},
		"a growing delay from zero": {
			[]handler.ChangeOption{handler.ExponentialBackoff(0, time.Minute)}, []string{"the first pause of the exponential backoff must be positive, not 0s"},
		},
		"a growing delay that cannot grow": {
			[]handler.ChangeOption{handler.ExponentialBackoff(time.Hour, time.Minute)},
			[]string{"the longest pause of the exponential backoff, 1m0s, is shorter than its first pause, 1h0m0s"},
		},
		"a negative delay": {
			[]handler.ChangeOption{handler.Backoff(-time.Minute)}, []string{"the backoff -1m0s is negative"},
		},
		"an unknown mode": {
			[]handler.ChangeOption{handler.Errors(7)}, []string{"invalid mode of errors 7: use kopf.ErrorsTemporary"},
		},
		"several mistakes are reported together": {
			[]handler.ChangeOption{handler.ID(""), handler.Timeout(-1), handler.Retries(-1), handler.Labels(map[string]handler.Matcher{"": {}})},
			[]string{"its id is empty", "the timeout", "kopf.Retries(-1)", "empty label"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := handler.Update(kex, change(doNothing), append([]handler.ChangeOption{handler.ID("fn")}, test.options...)...)
			refused(t, d, err, append(test.want, "the update handler")...)
		})
	}
}

// A Go type can be older than the resource, and only have a part of its fields.
func TestFieldsThatMayExistAreAccepted(t *testing.T) {
	typed := change(doNothing)
	typed.Object = &corev1.Pod{}
	for _, field := range []string{"spec.fromTheFuture", "spec.nodeSelector.zone", "metadata.annotations.any", "spec.nodeName"} {
		if _, err := handler.ForField(selector.Selector{}, []string{field}, typed); err != nil {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := handler.ForField(kex, []string{"spec.siez"}, change(doNothing)); err != nil {
		t.Error(err)
	}
	if _, err := handler.Validate(selector.Selector{}, typed, handler.Field("spec.nodeNam"), handler.Subresource("binding")); err != nil {
		t.Error(err)
	}
}

func TestInvalidFunctionsAndResourcesAreRejected(t *testing.T) {
	tests := map[string]struct {
		declare func() (*handler.Declaration, error)
		want    []string
	}{
		"no function": {
			func() (*handler.Declaration, error) { return handler.Create(kex, handler.Function{}) },
			[]string{`the create handler "": the function is nil`},
		},
		"no function, but an id": {
			func() (*handler.Declaration, error) {
				return handler.Watch(kex, handler.Function{}, handler.ID("a"))
			},
			[]string{`the event handler "a": the function is nil`},
		},
		"no resource": {
			func() (*handler.Declaration, error) {
				return handler.Create(selector.Selector{}, change(doNothing))
			},
			[]string{"it has no resource: specify one with kopf.Resource(...)"},
		},
		"an invalid selector": {
			func() (*handler.Declaration, error) {
				return handler.Delete(selector.New("a", "b", "c", "d"), change(doNothing))
			},
			[]string{`the delete handler "doNothing": the resource selector "a/b/c/d"`},
		},
		"a field that the Go type does not have": {
			func() (*handler.Declaration, error) {
				fn := change(doNothing)
				fn.Object = &corev1.Pod{}
				return handler.ForField(selector.Selector{}, []string{"spec.nodeNam"}, fn)
			},
			[]string{`the field handler "doNothing/spec.nodeNam": the type *v1.Pod has no field "spec.nodeNam": did you mean "spec.nodeName"?`},
		},
		"a field handler without a field": {
			func() (*handler.Declaration, error) { return handler.ForField(kex, nil, change(doNothing)) },
			[]string{"the field handler", "the field is empty"},
		},
		"a field handler with two fields": {
			func() (*handler.Declaration, error) {
				return handler.ForField(kex, []string{"spec"}, change(doNothing), handler.Field("status"))
			},
			[]string{"it has two fields"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := test.declare()
			refused(t, d, err, test.want...)
		})
	}
}

// Values that Kubernetes cannot rule out are accepted.
func TestUnusualOptionsAreAccepted(t *testing.T) {
	d, err := handler.Update(kex, change(doNothing), handler.Retries(1), handler.Backoff(0), handler.Timeout(0), handler.Field("spec"),
		handler.ValueBefore(handler.Absent()), handler.ValueAfter(handler.Equal(nil)), handler.Labels(nil), handler.Annotations(map[string]handler.Matcher{}))
	declared(t, d, err)
}

func TestMistakesHaveTheLocationOfTheDeclaration(t *testing.T) {
	_, _, line, _ := runtime.Caller(0)
	_, err := handler.Create(kex, change(doNothing), handler.Timeout(-1))
	want := fmt.Sprintf("handler/validate_test.go:%d: the create handler \"doNothing\": the timeout", line+1)
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestMessagesAreDeterministic(t *testing.T) {
	filters := map[string]handler.Matcher{"a": {}, "b": {}, "c": {}, "d": {}, "": {}}
	place := regexp.MustCompile(`:\d+:`)
	messages := map[string]bool{}
	for range 20 {
		_, err := handler.Create(kex, change(doNothing), handler.Labels(filters))
		messages[place.ReplaceAllString(err.Error(), "")] = true
	}
	if len(messages) != 1 {
		t.Errorf("got %d different messages", len(messages))
	}
}

func TestBindUsesTheScheme(t *testing.T) {
	d, err := handler.Create(selector.Selector{}, typedOf(&corev1.Pod{}, doNothing))
	typed := declared(t, d, err)
	known, unknown := apiruntime.NewScheme(), apiruntime.NewScheme()
	if err := corev1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	bound, err := typed.Bind(known)
	if err != nil || bound.Selector.String() != "Pod.v1" || typed.Selector != (selector.Selector{}) || !bound.IsSame(typed) {
		t.Errorf("got %+v, %v", bound, err)
	}
	_, err = typed.Bind(unknown)
	if err == nil || !strings.Contains(err.Error(), `the create handler "doNothing": the type *v1.Pod is not in the scheme`) ||
		errors.Unwrap(err) == nil {
		t.Errorf("got %v", err)
	}
	d, err = handler.Create(kex, change(doNothing))
	untyped := declared(t, d, err)
	if same, err := untyped.Bind(unknown); err != nil || same != untyped {
		t.Errorf("got %v, %v", same, err)
	}
}

// Any field can have handlers. Their ids are names of annotations, and differ.
func TestIDsOfFieldsCanBeStored(t *testing.T) {
	tests := map[string]string{
		"spec.size":                "fn/spec.size",
		"spec.hosts.*.example.com": "fn/spec.hosts._.example.com-",
		"spec.hosts.?.example.com": "fn/spec.hosts._.example.com-",
		"spec.my field":            "fn/spec.my_field-",
		"spec.a:b~c":               "fn/spec.a_b_c-",
		"spec.größe":               "fn/spec.gr__e-",
		"spec.*":                   "fn/spec._-",
		"spec.trailing_":           "fn/spec.trailing_-",
	}
	seen := map[string]bool{}
	for field, want := range tests {
		d, err := handler.Update(selector.New("kex"), functionOf(func(context.Context, *handler.Call) error { return nil }), handler.ID("fn"), handler.Field(field))
		if err != nil {
			t.Errorf("%s: %v", field, err)
			continue
		}
		if !strings.HasPrefix(d.ID, want) || seen[d.ID] || len(validation.IsQualifiedName("kopf.dev/"+strings.ReplaceAll(d.ID, "/", "."))) > 0 {
			t.Errorf("%s: got %q", field, d.ID)
		}
		seen[d.ID] = true
	}
}
