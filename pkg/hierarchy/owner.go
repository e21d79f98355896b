package hierarchy

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Owner is what others need to know of an object to belong to it. It may be
// incomplete: only what a function needs must be there, and the function says
// what is missing.
type Owner struct {
	APIVersion string
	Kind       string
	Name       string
	Namespace  string // empty for a cluster-scoped object
	UID        types.UID
	Labels     map[string]string // read only
}

// bodied is what handlers get as their arguments.
type bodied interface{ Body() *object.Body }

// OwnerOf reads the identity of any object: a body or the arguments of a
// handler, a typed or an unstructured object, a map, or an Owner itself. Typed
// objects often do not know their apiVersion and kind; they stay empty then, see
// OwnerFromScheme. It fails for what is not an object.
func OwnerOf(obj any) (Owner, error) {
	if isNil(obj) {
		return Owner{}, fmt.Errorf("the object is nil")
	}
	switch obj := obj.(type) {
	case Owner:
		return obj, nil
	case *object.Body:
		return OwnerOfBody(obj), nil
	case bodied:
		return OwnerOf(obj.Body())
	case map[string]any:
		return ownerOfMapping(obj)
	case *unstructured.Unstructured:
		return ownerOfMapping(obj.Object)
	case metav1.Object:
		return ownerOfTyped(obj), nil
	}
	return Owner{}, fmt.Errorf("%T is not an object: it has no metadata", obj)
}

// OwnerOfBody is OwnerOf for the object that is being handled.
func OwnerOfBody(b *object.Body) Owner {
	return Owner{
		APIVersion: b.APIVersion(), Kind: b.Kind(),
		Name: b.Name(), Namespace: b.Namespace(), UID: b.UID(), Labels: b.Labels(),
	}
}

// OwnerFromScheme is OwnerOf for a typed object whose apiVersion and kind are
// empty: they are those of its Go type in the scheme. It fails if the scheme
// does not know the type, or knows it under several kinds.
func OwnerFromScheme(obj runtime.Object, scheme *runtime.Scheme) (Owner, error) {
	owner, err := OwnerOf(obj)
	if err != nil || owner.Kind != "" {
		return owner, err
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return Owner{}, fmt.Errorf("the kind of %s is unknown: %w", owner, err)
	}
	owner.APIVersion, owner.Kind = gvk.ToAPIVersionAndKind()
	return owner, nil
}

// String names the owner in messages: KopfExample "default/example".
func (o Owner) String() string { return describe(o.Kind, o.Namespace, o.Name) }

func describe(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	if kind == "" {
		kind = "object"
	}
	return fmt.Sprintf("%s %q", kind, name)
}

func ownerOfTyped(obj metav1.Object) Owner {
	owner := Owner{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
		Labels: maps.Clone(obj.GetLabels()),
	}
	if kinded, ok := obj.(runtime.Object); ok {
		owner.APIVersion, owner.Kind = kinded.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	}
	return owner
}

func ownerOfMapping(obj map[string]any) (Owner, error) {
	meta, err := decodeMetadata(obj)
	if err != nil {
		return Owner{}, err
	}
	apiVersion, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	return Owner{
		APIVersion: apiVersion, Kind: kind,
		Name: meta.Name, Namespace: meta.Namespace, UID: meta.UID, Labels: meta.Labels,
	}, nil
}
