package converge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// Key identifies a child.
type Key = convergence.ChildKey

func keyOf(u *unstructured.Unstructured) Key {
	return Key{GroupKind: u.GroupVersionKind().GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// child is an object that a handler wants.
type child struct {
	Key
	resource selector.Resource
	wave     int
	keep     bool
	// label is that of the child if it has one of a former name of the operator.
	label string
	// content is the object as the handler wants it, without what the operator adds.
	content map[string]any
	// problem is why the resource of the child is unknown.
	problem error
}

// systemFields are the fields of metadata that only the API server writes.
var systemFields = []string{"creationTimestamp", "resourceVersion", "uid", "generation", "managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}

// readChild reads an object as a handler returns it.
func readChild(obj client.Object, scheme *runtime.Scheme) (*child, error) {
	u, err := toUnstructured(obj, scheme)
	if err != nil {
		return nil, err
	}
	if u.GetName() == "" {
		return nil, errWithoutName(u)
	}
	ch := &child{}
	if err := ch.readAnnotations(u); err != nil {
		return nil, err
	}
	ch.content = clean(u.Object)
	return ch, nil
}

// locate finds the resource of a child, and completes its namespace. If the resource cannot be
// found, the child has a problem: the other children can be applied nevertheless.
func (ch *child) locate(ctx context.Context, parent Parent, resources *watch.Kinds) error {
	u := &unstructured.Unstructured{Object: ch.content}
	ch.resource, ch.problem = resources.Find(ctx, u.GroupVersionKind())
	switch {
	case ch.problem == nil && !ch.resource.Namespaced:
		u.SetNamespace("")
	case u.GetNamespace() == "":
		u.SetNamespace(parent.Key.Namespace)
	}
	if ch.problem == nil && ch.resource.Namespaced && u.GetNamespace() == "" {
		return fmt.Errorf("the child %s has no namespace, and its parent is cluster-scoped: set one", convergence.Describe(u.GroupVersionKind().GroupKind(), "", u.GetName()))
	}
	ch.Key = keyOf(u)
	return nil
}

// definitionKind is the kind of resource definitions.
var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// defines reports whether the child is the definition of a kind.
func (ch *child) defines(kind schema.GroupKind) bool {
	group, _, _ := unstructured.NestedString(ch.content, "spec", "group")
	name, _, _ := unstructured.NestedString(ch.content, "spec", "names", "kind")
	return ch.GroupKind == definitionKind && kind == schema.GroupKind{Group: group, Kind: name}
}

func errWithoutName(u *unstructured.Unstructured) error {
	kind := u.GroupVersionKind().GroupKind()
	if u.GetGenerateName() != "" {
		return fmt.Errorf("a child of the kind %s has a generateName: each call would create another one, so set a name that is always the same", kind)
	}
	return fmt.Errorf("a child of the kind %s has no name: set one that is always the same", kind)
}

// toUnstructured returns a copy of an object, with its kind.
func toUnstructured(obj client.Object, scheme *runtime.Scheme) (*unstructured.Unstructured, error) {
	if obj == nil {
		return nil, errors.New("a child is nil")
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if u.GetKind() == "" || u.GetAPIVersion() == "" {
			return nil, fmt.Errorf("the child %q has no apiVersion or no kind", u.GetName())
		}
		return u.DeepCopy(), nil
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, fmt.Errorf("the child %q has a Go type without a kind: add it to the scheme of the operator: %w", obj.GetName(), err)
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("the child %s cannot be converted to JSON: %w", convergence.Describe(gvk.GroupKind(), obj.GetNamespace(), obj.GetName()), err)
	}
	u := &unstructured.Unstructured{Object: raw}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// readAnnotations takes out the wave, and reads whether the child must be kept.
func (ch *child) readAnnotations(u *unstructured.Unstructured) (err error) {
	annotations := u.GetAnnotations()
	ch.keep = isKept(annotations)
	if text, ok := annotations[convergence.WaveAnnotation]; ok {
		ch.wave, err = strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("the child %q has an invalid wave: %w", u.GetName(), err)
		}
		delete(annotations, convergence.WaveAnnotation)
	}
	delete(annotations, convergence.MarksAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	u.SetAnnotations(annotations)
	return nil
}

func isKept(annotations map[string]string) bool {
	value, ok := annotations[convergence.KeepAnnotation]
	return ok && value != "false"
}

// clean removes what is not wanted but only left over from a Go type: the status, system
// fields, and nulls. Fields that the API server stores as others are replaced by these.
func clean(content map[string]any) map[string]any {
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, field := range systemFields {
			delete(metadata, field)
		}
	}
	withoutNulls(content)
	replaceAliases(content)
	return content
}

func withoutNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			if item == nil {
				delete(value, key)
			} else {
				withoutNulls(item)
			}
		}
	case []any:
		for _, item := range value {
			withoutNulls(item)
		}
	}
}

// place returns where the child is, from the view of its parent.
func (ch *child) place(parent Parent) convergence.Place {
	place := convergence.Place{GroupKind: ch.GroupKind, Namespace: ch.Namespace}
	switch ch.Namespace {
	case "":
		place.Namespace = convergence.NoNamespace
	case parent.Key.Namespace:
		place.Namespace = ""
	}
	return place
}

// applied is a child as it is applied.
type applied struct {
	*child
	content map[string]any
	hash    string // of the content with the accepted fields
	// accepted are the fields that are left out because they are left to others.
	accepted accepted
	// version is the version of the child about which a handler has decided. Another version
	// needs another decision. It is empty without one.
	version string
}

// mark adds the label, the owner reference, and the annotation, and leaves out the accepted
// fields. A child that must be kept, or that the garbage collector does not reach, has no owner
// reference.
func (ch *child) mark(o Owner, keep bool, fields accepted) applied {
	u := (&unstructured.Unstructured{Object: ch.content}).DeepCopy()
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	owner := cmp.Or(ch.label, o.Hash())
	labels[convergence.OwnerLabel] = owner
	u.SetLabels(labels)
	if o.Parent.reaches(ch.Namespace) && !keep && !ch.keep {
		ours := o.Parent.reference()
		references := withoutUID(u, string(o.Parent.UID))
		_ = unstructured.SetNestedSlice(u.Object, append(references, ours), "metadata", "ownerReferences")
	}
	a := applied{child: ch, content: u.Object, hash: hashOf(u.Object)}
	a.accepted = fields.leaveOut(u.Object)
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[convergence.MarksAnnotation] = annotation{marks{Wanted: a.hash, Handler: o.Handler, Parent: o.Parent.String()}, bindingOf(owner, ch.Key), a.accepted}.text()
	u.SetAnnotations(annotations)
	return a
}

// withoutUID returns the owner references that the handler has set, except one.
func withoutUID(u *unstructured.Unstructured, uid string) []any {
	references, _, _ := unstructured.NestedSlice(u.Object, "metadata", "ownerReferences")
	return slices.DeleteFunc(references, func(reference any) bool {
		fields, _ := reference.(map[string]any)
		return fields["uid"] == uid
	})
}

// kindOrder are the kinds that others need, in the order in which they are applied within a
// wave. All other kinds follow in the order of the handler.
var kindOrder = []schema.GroupKind{
	{Kind: "Namespace"},
	definitionKind,
	{Kind: "ServiceAccount"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
	{Kind: "Secret"},
	{Kind: "ConfigMap"},
	{Kind: "PersistentVolume"},
	{Kind: "PersistentVolumeClaim"},
	{Kind: "Service"},
}

// sortChildren sorts children by wave and kind.
func sortChildren(all []*child) {
	slices.SortStableFunc(all, func(a, b *child) int {
		return cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.rank(), b.rank()))
	})
}

func (ch *child) rank() int {
	if i := slices.Index(kindOrder, ch.GroupKind); i >= 0 {
		return i
	}
	return len(kindOrder)
}
