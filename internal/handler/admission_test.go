package handler_test

import (
	"context"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func admit(context.Context, *handler.Call) error { return nil }

func validating(fn func(context.Context, *handler.Call) error, options ...handler.AdmissionOption) (*handler.Declaration, error) {
	return handler.Validate(kex, functionOf(fn), options...)
}

func TestMistakesInAdmissionHandlers(t *testing.T) {
	tests := map[string]struct {
		fn      func(context.Context, *handler.Call) error
		options []handler.AdmissionOption
		says    string
	}{
		"no function":            {nil, nil, "the function is nil"},
		"an unknown operation":   {admit, []handler.AdmissionOption{handler.Operations("PATCH")}, `unknown operation "PATCH"`},
		"no operation":           {admit, []handler.AdmissionOption{handler.Operations()}, "leave it out to select all"},
		"no subresource":         {admit, []handler.AdmissionOption{handler.Subresource("")}, `invalid subresource ""`},
		"a path for subresource": {admit, []handler.AdmissionOption{handler.Subresource("pods/exec")}, `invalid subresource "pods/exec"`},
		"an id that is a path":   {admit, []handler.AdmissionOption{handler.ID("validating")}, `the path "/validating" calls all`},
		"another one":            {admit, []handler.AdmissionOption{handler.ID("mutating")}, `the path "/mutating" calls all`},
		"a value without field":  {admit, []handler.AdmissionOption{handler.Value(handler.Present())}, "add kopf.Field"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := validating(test.fn, test.options...)
			refused(t, d, err, test.says)
		})
	}
}

func TestAdmissionKindsAreNeitherChangesNorBackground(t *testing.T) {
	for _, kind := range []handler.Kind{handler.OnValidate, handler.OnMutate} {
		if kind.IsChange() || kind.IsBackground() || !kind.IsAdmission() {
			t.Errorf("%s: changing %v, background %v, admission %v", kind, kind.IsChange(), kind.IsBackground(), kind.IsAdmission())
		}
	}
	if handler.OnCreate.IsAdmission() {
		t.Error("creation handlers count as admission handlers")
	}
}

func TestLabelSelectorContainsSimpleFilters(t *testing.T) {
	expression := func(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	tests := map[string]struct {
		labels map[string]handler.Matcher
		want   []metav1.LabelSelectorRequirement
	}{
		"nothing":    {nil, nil},
		"a value":    {map[string]handler.Matcher{"a": handler.Equal("b")}, []metav1.LabelSelectorRequirement{expression("a", "In", "b")}},
		"presence":   {map[string]handler.Matcher{"a": handler.Present()}, []metav1.LabelSelectorRequirement{expression("a", "Exists")}},
		"absence":    {map[string]handler.Matcher{"a": handler.Absent()}, []metav1.LabelSelectorRequirement{expression("a", "DoesNotExist")}},
		"a callback": {map[string]handler.Matcher{"a": handler.None(handler.Equal("b"))}, nil},
		"a number":   {map[string]handler.Matcher{"a": handler.Equal(1)}, nil},
		"several": {
			map[string]handler.Matcher{"c": handler.Present(), "a": handler.Equal("b"), "b": handler.None(handler.Present())},
			[]metav1.LabelSelectorRequirement{expression("a", "In", "b"), expression("c", "Exists")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := validating(admit, handler.Labels(test.labels), handler.ID("a"))
			got := declared(t, d, err).LabelSelector()
			if test.want == nil && got == nil {
				return
			}
			if got == nil || !reflect.DeepEqual(got.MatchExpressions, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestReviewWithChangedObjectKeepsTheRest(t *testing.T) {
	before, after := object.NewBody(m{"a": int64(1)}), object.NewBody(m{"a": int64(2)})
	update := &handler.Review{Operation: "UPDATE", Old: before, New: before, Name: "one", DryRun: true}
	if next := update.With(after); next.Old != before || next.Body() != after || next.Name != "one" || !next.DryRun {
		t.Errorf("got %+v", next)
	}
	deletion := &handler.Review{Operation: "DELETE", Old: before}
	if next := deletion.With(after); next.New != nil || next.Body() != after {
		t.Errorf("got %+v", next)
	}
}
