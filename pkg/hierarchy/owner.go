package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Owner identifies an object to which others can belong. It may be incomplete: a
// function fails only if a part that it needs is missing, and names that part.
type Owner struct {
	APIVersion string
	Kind       string
	Name       string
	Namespace  string // empty for a cluster-scoped object
	UID        types.UID
	Labels     map[string]string // read only
}

// OwnerOf reads the identity of any object: a body or the arguments of a
// handler, a typed or an unstructured object, a map, or an Owner itself. Typed
// objects often have no apiVersion and kind; these stay empty then, see
// OwnerFromScheme. It fails if obj is not an object.
func OwnerOf(obj any) (Owner, error) {
	if isNil(obj) {
		return Owner{}, errors.New("the object is nil")
	}
	switch obj := obj.(type) {
	case Owner:
		return obj, nil
	case *object.Body:
		return OwnerOfBody(obj), nil
	case *object.Snapshot:
		return OwnerOfBody(obj.Body()), nil
	case interface{ Body() *object.Body }: // the arguments of a handler
		return OwnerOf(obj.Body())
	case *unstructured.Unstructured:
		return ownerOfMap(obj.Object)
	case map[string]any:
		return ownerOfMap(obj)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return Owner{}, fmt.Errorf("%T is not an object: it has no metadata", obj)
	}
	var apiVersion, kind string
	if typed, ok := obj.(runtime.Object); ok {
		apiVersion, kind = typed.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	}
	return newOwner(apiVersion, kind, metadataOf(accessor)), nil
}

func ownerOfMap(obj map[string]any) (Owner, error) {
	_, metadata, err := decodeMetadata(obj)
	if err != nil {
		return Owner{}, err
	}
	apiVersion, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	return newOwner(apiVersion, kind, metadata), nil
}

func newOwner(apiVersion, kind string, metadata metav1.ObjectMeta) Owner {
	return Owner{
		APIVersion: apiVersion, Kind: kind,
		Name: metadata.Name, Namespace: metadata.Namespace, UID: metadata.UID, Labels: maps.Clone(metadata.Labels),
	}
}

// OwnerOfBody returns the identity of the object being handled.
func OwnerOfBody(b *object.Body) Owner {
	return Owner{
		APIVersion: b.APIVersion(), Kind: b.Kind(),
		Name: b.Name(), Namespace: b.Namespace(), UID: b.UID(), Labels: b.Labels(),
	}
}

// OwnerFromScheme is OwnerOf for a typed object whose apiVersion and kind are
// empty: it takes those of the object's Go type in the scheme. It fails if the
// scheme does not know the type, or knows it under several kinds.
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

// String names the owner in messages, as in KopfExample "default/example".
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

type (
	ownerKey  struct{}
	schemeKey struct{}
)

// WithOwner returns a context that carries the object being handled. The engine
// calls it for every handler; call it yourself where there is no handler, such
// as in a test of a function that adopts.
func WithOwner(ctx context.Context, owner Owner) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// WithLazyOwner is WithOwner for an object that is decoded only when the owner is
// needed: most handlers adopt nothing, and decoding their object costs more than
// all the rest of a call. The function may be called concurrently.
func WithLazyOwner(ctx context.Context, body func() *object.Body) context.Context {
	return context.WithValue(ctx, ownerKey{}, body)
}

// OwnerFrom returns the object that the context carries, if there is one.
func OwnerFrom(ctx context.Context) (Owner, bool) {
	switch carried := ctx.Value(ownerKey{}).(type) {
	case Owner:
		return carried, true
	case func() *object.Body:
		return OwnerOfBody(carried()), true
	default:
		return Owner{}, false
	}
}

// WithScheme returns a context with the scheme in which OwnedBy finds the kinds of
// typed objects. The engine calls it for every handler, with the client's scheme.
func WithScheme(ctx context.Context, scheme *runtime.Scheme) context.Context {
	return context.WithValue(ctx, schemeKey{}, scheme)
}

// resolveOwner returns the owner that the options name, or else that of the context.
func (c *config) resolveOwner(ctx context.Context) (Owner, error) {
	if c.owner == nil {
		current, known := OwnerFrom(ctx)
		if !known {
			return Owner{}, errors.New("there is no owner: the context has no handled object; " +
				"pass the context of the handler, or name the owner with OwnedBy")
		}
		return current, nil
	}
	return ResolveOwner(ctx, *c.owner)
}

// ResolveOwner is OwnerOf, and adds the kind of typed objects that lack it. It takes the kind
// of the handled object if it is that one, and otherwise that of the Go type in the context's
// scheme; see WithScheme.
func ResolveOwner(ctx context.Context, obj any) (Owner, error) {
	owner, err := OwnerOf(obj)
	if err != nil || owner.Kind != "" {
		return owner, err
	}
	if current, known := OwnerFrom(ctx); known && owner.UID != "" && owner.UID == current.UID {
		owner.APIVersion = current.APIVersion
		owner.Kind = current.Kind
		return owner, nil
	}
	scheme, _ := ctx.Value(schemeKey{}).(*runtime.Scheme)
	if typed, ok := obj.(runtime.Object); ok && scheme != nil {
		return OwnerFromScheme(typed, scheme)
	}
	return owner, nil
}
