package kopf

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crconversion "sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// The versions of one kind: v2 is the hub.
type (
	shopMeta struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	shopV1 struct {
		shopMeta `json:",inline"`

		Size int `json:"size"`
	}
	shopV2 struct {
		shopMeta `json:",inline"`

		Big bool `json:"big"`
	}
	shopV3 struct {
		shopMeta `json:",inline"`

		Grade string `json:"grade"`
	}
)

func (s *shopV1) DeepCopyObject() apiruntime.Object { other := *s; return &other }
func (s *shopV2) DeepCopyObject() apiruntime.Object { other := *s; return &other }
func (s *shopV3) DeepCopyObject() apiruntime.Object { other := *s; return &other }
func (*shopV2) Hub()                                {}

func (s *shopV1) ConvertTo(hub crconversion.Hub) error {
	hub.(*shopV2).Big = s.Size > 10
	return nil
}

func (s *shopV1) ConvertFrom(hub crconversion.Hub) error {
	s.Size = 1
	if hub.(*shopV2).Big {
		s.Size = 11
	}
	return nil
}

func (s *shopV3) ConvertTo(hub crconversion.Hub) error {
	hub.(*shopV2).Big = s.Grade == "big"
	return nil
}

func (s *shopV3) ConvertFrom(hub crconversion.Hub) error {
	s.Grade = "small"
	if hub.(*shopV2).Big {
		s.Grade = "big"
	}
	hub.(*shopV2).Name = "changed" // of the hub, which is a copy
	return nil
}

func shopScheme(versions ...string) *apiruntime.Scheme {
	types := map[string]client.Object{"v1": &shopV1{}, "v2": &shopV2{}, "v3": &shopV3{}, "v4": &corev1.Pod{}}
	scheme := apiruntime.NewScheme()
	for _, version := range versions {
		scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Shop"}, types[version])
	}
	return scheme
}

// convertShop converts an object by the declarations of a registry.
func convertShop(t *testing.T, r *Registry, scheme *apiruntime.Scheme, from, to string, fields map[string]any) (map[string]any, error) {
	t.Helper()
	graphs, problems := r.Declarations().Conversions(scheme).Resolve([]selector.Resource{{Group: "example.com", Version: "v2", Plural: "shops", Kind: "Shop", Preferred: true}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	object := map[string]any{"apiVersion": "example.com/" + from, "kind": "Shop", "metadata": map[string]any{"name": "one", "labels": map[string]any{"a": "b"}}}
	for key, value := range fields {
		object[key] = value
	}
	converted, err := graphs["shops.example.com"].Convert(t.Context(), &unstructured.Unstructured{Object: object}, to, logr.Discard())
	if err != nil {
		return nil, err
	}
	return converted.Object, nil
}

func TestTypesWithAHubAreConverted(t *testing.T) {
	r := NewRegistry()
	OnConvertHub[*shopV2](r)
	scheme := shopScheme("v1", "v2", "v3")
	if _, err := r.handlers.Handlers(scheme); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		from, to string
		fields   map[string]any
		want     string
	}{
		{"v1", "v2", map[string]any{"size": int64(20)}, "map[apiVersion:example.com/v2 big:true kind:Shop metadata:map[labels:map[a:b] name:one]]"},
		{"v1", "v3", map[string]any{"size": int64(20)}, "map[apiVersion:example.com/v3 grade:big kind:Shop metadata:map[labels:map[a:b] name:one]]"},
		{"v3", "v1", map[string]any{"grade": "small"}, "map[apiVersion:example.com/v1 kind:Shop metadata:map[labels:map[a:b] name:one] size:1]"},
	} {
		got, err := convertShop(t, r, scheme, test.from, test.to, test.fields)
		if err != nil || fmt.Sprint(got) != test.want {
			t.Errorf("from %s to %s: got %v, %v", test.from, test.to, got, err)
		}
	}
	if _, err := convertShop(t, r, scheme, "v1", "v2", map[string]any{"size": "many"}); err == nil || !strings.Contains(err.Error(), "from v1 to v2: the object does not fit the Go type *kopf.shopV1 in size") {
		t.Errorf("got %v", err)
	}
}

func TestFunctionsOfTypesConvert(t *testing.T) {
	r := NewRegistry()
	OnConvertOf(r, func(_ context.Context, from *shopV1, to *shopV3) error {
		if from.Size < 0 {
			return errors.New("it is negative")
		}
		to.Grade = fmt.Sprint(from.Size, from.Name, to.Name)
		to.Annotations = map[string]string{"size": fmt.Sprint(from.Size)}
		return nil
	})
	OnConvertOf(r, func(context.Context, *shopV3, *shopV1) error { return nil })
	scheme := shopScheme("v1", "v3")
	got, err := convertShop(t, r, scheme, "v1", "v3", map[string]any{"size": int64(3)})
	if want := "map[apiVersion:example.com/v3 grade:3oneone kind:Shop metadata:map[annotations:map[size:3] labels:map[a:b] name:one]]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := convertShop(t, r, scheme, "v1", "v3", map[string]any{"size": int64(-1)}); err == nil || err.Error() != "from v1 to v3: it is negative" {
		t.Errorf("got %v", err)
	}
}

func TestRefusedConversions(t *testing.T) {
	same := func(context.Context, *Conversion) error { return nil }
	for want, test := range map[string]struct {
		declare  func(r *Registry)
		versions []string
	}{
		"it converts v1 to itself":                                 {func(r *Registry) { r.OnConvert(Resource("kex"), "v1", "v1", same) }, nil},
		"the conversion of kex from v1 to v2: the function is nil": {func(r *Registry) { r.OnConvert(Resource("kex"), "v1", "v2", nil) }, nil},
		"the conversion of Go types: the function is nil":          {func(r *Registry) { OnConvertOf[*shopV1, *shopV2](r, nil) }, nil},
		"it has no types":                                          {func(r *Registry) { OnConvertOf(r, func(context.Context, client.Object, *shopV2) error { return nil }) }, nil},
		"the type *kopf.shopV1 is not in the scheme":               {func(r *Registry) { OnConvertOf(r, func(context.Context, *shopV1, *shopV2) error { return nil }) }, []string{"v2"}},
		"a conversion is between versions of one kind":             {func(r *Registry) { OnConvertOf(r, func(context.Context, *shopV1, *otherShop) error { return nil }) }, []string{"v1"}},
		"the type *kopf.shopV2 is not in the scheme":               {func(r *Registry) { OnConvertHub[*shopV2](r) }, nil},
		"the scheme has no other version of Shop.example.com":      {func(r *Registry) { OnConvertHub[*shopV2](r) }, []string{"v2"}},
		"*v1.Pod does not implement conversion.Convertible":        {func(r *Registry) { OnConvertHub[*shopV2](r) }, []string{"v1", "v2", "v4"}},
		`declare kopf.OnConvert from "v2" to "v1", too`:            {func(r *Registry) { OnConvertOf(r, func(context.Context, *shopV1, *shopV2) error { return nil }) }, []string{"v1", "v2"}},
		"is already declared at kopf/convert_test.go:": {func(r *Registry) {
			OnConvertHub[*shopV2](r)
			OnConvertOf(r, func(context.Context, *shopV1, *shopV2) error { return nil })
		}, []string{"v1", "v2"}},
	} {
		r := NewRegistry()
		test.declare(r)
		scheme := shopScheme(test.versions...)
		scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Other"}, &otherShop{})
		if _, err := r.handlers.Handlers(scheme); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "kopf/convert_test.go:") {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if _, err := NewOperator(Options{Registry: nilRegistryWithAConversion(t)}); err == nil || !strings.Contains(err.Error(), "is declared in a registry that is nil") {
		t.Errorf("got %v", err)
	}
}

// otherShop is of another kind.
type otherShop struct{ shopV1 }

func nilRegistryWithAConversion(t *testing.T) *Registry {
	t.Helper()
	withDefaultRegistry(t)
	var missing *Registry
	missing.OnConvert(Resource("kex"), "v1", "v2", func(context.Context, *Conversion) error { return nil })
	return NewRegistry()
}
