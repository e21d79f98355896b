package kopf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	crconversion "sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/internal/handler"
)

// Conversion has the arguments of a conversion. Use it only in the goroutine of the function, while the function runs.
type Conversion struct{ call *conversion.Call }

// Object returns the object to convert. The function changes it in place; its content is a copy. Of the metadata, only
// labels and annotations can change. The apiVersion changes by itself.
func (c *Conversion) Object() *unstructured.Unstructured { return c.call.Object }

// From returns the version that the object has: "v1alpha1".
func (c *Conversion) From() string { return c.call.From }

// To returns the version that the object must get.
func (c *Conversion) To() string { return c.call.To }

// Logger returns the logger of the operator, with the object and the versions.
func (c *Conversion) Logger() logr.Logger { return c.call.Logger }

// OnConvert declares how objects of a custom resource are converted from one version to another. The API server calls
// the operator for it whenever the version of a request is not the one in which an object is stored.
//
//	registry.OnConvert(kopf.Resource("sites"), "v1alpha1", "v1", func(ctx context.Context, c *kopf.Conversion) error { … })
//
// Versions that no declaration connects directly are converted over others, on the shortest way: declare the
// conversions from and to one version, or from each version to the next one and back. Every version needs a way to
// every other one that is stored or served.
//
// The function must be quick, must always return the same for the same object, and must have no effects: it is called
// often, and not only for requests that change something. What another version cannot express must be kept for the way
// back, such as in an annotation. If it returns an error, the whole request fails, and its user sees the error with the
// name of the object. Nothing is stored then.
//
// The conversions are served by Settings.Admission.Server. With Settings.Admission.Managed, the operator writes
// spec.conversion of the definition.
func (r *Registry) OnConvert(sel Selector, from, to string, fn func(context.Context, *Conversion) error) {
	var convert conversion.Function
	if fn != nil {
		convert = func(ctx context.Context, c *conversion.Call) error { return fn(ctx, &Conversion{c}) }
	}
	r.declared().AddConversion(conversion.New(sel, from, to, convert))
}

// OnConvertOf is Registry.OnConvert for Go types of two versions of one kind, which are in the scheme of the operator.
// The object of the second type has the metadata already.
//
//	kopf.OnConvertOf(registry, func(ctx context.Context, from *v1alpha1.Site, to *v1.Site) error { … })
//
// An object that does not fit its type cannot be converted. The conversion keeps no fields that the types do not know.
func OnConvertOf[A, B client.Object](r *Registry, fn func(context.Context, A, B) error) {
	r.declared().AddConversion(conversion.Typed(func(*runtime.Scheme) ([]conversion.Pair, error) {
		from := newOf[A]()
		to := newOf[B]()
		switch {
		case any(from) == nil || any(to) == nil:
			return nil, errors.New("it has no types: use a function with pointers to Go types, such as *v1.Site")
		case fn == nil:
			return nil, errors.New("the function is nil")
		}
		convert := func(ctx context.Context, c *conversion.Call) error {
			from := newOf[A]()
			to := newOf[B]()
			return convertTyped(c, from, to, func() error { return fn(ctx, from, to) })
		}
		return []conversion.Pair{{From: from, To: to, Convert: convert}}, nil
	}), nil)
}

// OnConvertHub is Registry.OnConvert for Go types with the methods that kubebuilder projects have: H is the hub, and all
// other types of its kind in the scheme of the operator implement conversion.Convertible of controller-runtime.
//
//	kopf.OnConvertHub[*v1.Site](registry)
func OnConvertHub[H interface {
	client.Object
	crconversion.Hub
}](r *Registry) {
	r.declared().AddConversion(conversion.Typed(func(scheme *runtime.Scheme) ([]conversion.Pair, error) {
		hub := newOf[H]()
		if any(hub) == nil {
			return nil, errors.New("it has no type: use a pointer to a Go type, such as *v1.Site")
		}
		return pairsOfHub(hub, func() crconversion.Hub { return newOf[H]() }, scheme)
	}), nil)
}

// pairsOfHub returns the conversions between a hub and the other types of its kind.
func pairsOfHub(hub client.Object, newHub func() crconversion.Hub, scheme *runtime.Scheme) ([]conversion.Pair, error) {
	kind, err := apiutil.GVKForObject(hub, scheme)
	if err != nil {
		return nil, fmt.Errorf("the type %T is not in the scheme: add it with AddToScheme of its package to Options.Scheme: %w", hub, err)
	}
	var others []schema.GroupVersionKind
	for known := range scheme.AllKnownTypes() {
		if known.GroupKind() == kind.GroupKind() && known.Version != kind.Version && known.Version != runtime.APIVersionInternal {
			others = append(others, known)
		}
	}
	if len(others) == 0 {
		return nil, fmt.Errorf("the scheme has no other version of %s: add the types of all versions with AddToScheme of their packages to Options.Scheme", kind.GroupKind())
	}
	slices.SortFunc(others, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.Version, b.Version) })
	var pairs []conversion.Pair
	for _, other := range others {
		newSpoke := func() (crconversion.Convertible, error) {
			made, err := scheme.New(other)
			if err != nil {
				return nil, err
			}
			spoke, ok := made.(crconversion.Convertible)
			if !ok {
				return nil, fmt.Errorf("%T does not implement conversion.Convertible of controller-runtime: add its methods ConvertTo and ConvertFrom", made)
			}
			return spoke, nil
		}
		spoke, err := newSpoke()
		if err != nil {
			return nil, err
		}
		pairs = append(pairs,
			conversion.Pair{From: spoke, To: hub, Convert: func(_ context.Context, c *conversion.Call) error {
				from, err := newSpoke()
				if err != nil {
					return err
				}
				to := newHub()
				return convertTyped(c, from, to, func() error { return from.ConvertTo(to) })
			}},
			conversion.Pair{From: hub, To: spoke, Convert: func(_ context.Context, c *conversion.Call) error {
				to, err := newSpoke()
				if err != nil {
					return err
				}
				from := newHub()
				return convertTyped(c, from, to, func() error { return to.ConvertFrom(from) })
			}})
	}
	return pairs, nil
}

// convertTyped decodes the object of a call, converts it, and encodes the result.
func convertTyped(c *conversion.Call, from, to runtime.Object, convert func() error) error {
	if err := handler.DecodeObject(c.Object.Object, from); err != nil {
		return err
	}
	head := map[string]any{"metadata": c.Object.Object["metadata"]}
	if err := handler.DecodeObject(head, to); err != nil {
		return err
	}
	if err := convert(); err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(to)
	if err != nil {
		return fmt.Errorf("the result of the type %T cannot be encoded: %w", to, err)
	}
	content["apiVersion"] = schema.GroupVersion{Group: c.Object.GroupVersionKind().Group, Version: c.To}.String()
	content["kind"] = c.Object.GetKind()
	c.Object.Object = content
	return nil
}
