package metacontroller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/serve/document"
)

// childKind is a kind of children.
type childKind struct {
	schema.GroupVersionKind

	namespaced bool
	method     string
}

// kindOf returns the kind of a resource, as the cluster has it.
func kindOf(c client.Client, apiVersion, resource string) (childKind, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return childKind{}, fmt.Errorf("the apiVersion %q is not valid: %w", apiVersion, err)
	}
	found, err := c.RESTMapper().KindFor(version.WithResource(resource))
	if err == nil && found.GroupVersion() != version {
		err = fmt.Errorf("it is only known in %s", found.GroupVersion())
	}
	if err != nil {
		return childKind{}, fmt.Errorf("the cluster does not have the resource %s of %s: %w", resource, apiVersion, err)
	}
	mapping, err := c.RESTMapper().RESTMapping(found.GroupKind(), found.Version)
	if err != nil {
		return childKind{}, fmt.Errorf("the cluster does not have the kind %s of %s: %w", found.Kind, apiVersion, err)
	}
	return childKind{GroupVersionKind: found, namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}, nil
}

// childKinds returns the kinds of children of a controller.
func (c *Controller) childKinds(of client.Client) ([]childKind, error) {
	var all []childKind
	for _, rule := range c.declared.Children {
		kind, err := kindOf(of, rule.APIVersion, rule.Resource)
		if err != nil {
			return nil, err
		}
		kind.method = rule.Method
		all = append(all, kind)
	}
	return all, nil
}

// childKey identifies a child of a parent.
type childKey struct {
	kind schema.GroupVersionKind
	types.NamespacedName
}

func keyOf(child *unstructured.Unstructured) childKey {
	return childKey{child.GroupVersionKind(), types.NamespacedName{Namespace: child.GetNamespace(), Name: child.GetName()}}
}

// family are the children of one parent.
type family struct {
	*Controller

	client client.Client
	parent *unstructured.Unstructured
	kinds  []childKind
	// selector selects the children of composites. It is nil for decorators.
	selector labels.Selector
}

// decoratorAnnotation tells the attachments of a decorator from those of others.
const decoratorAnnotation = "metacontroller.k8s.io/decorator-controller"

// generatedLabel is the label of children with the uid of their parent.
const generatedLabel = "controller-uid"

// selectorOf returns the selector of the children of a parent.
func (c *Controller) selectorOf(parent *unstructured.Unstructured) (labels.Selector, error) {
	if c.declared.Kind == document.Decorator {
		return nil, nil //nolint:nilnil // a decorator has none
	}
	if c.declared.GenerateSelector {
		return labels.SelectorFromSet(labels.Set{generatedLabel: string(parent.GetUID())}), nil
	}
	declared, _, err := unstructured.NestedMap(parent.Object, "spec", "selector")
	if err != nil || len(declared) == 0 {
		return nil, errors.New("spec.selector must have matchLabels or matchExpressions, which select the children: without it, set generateSelector in the CompositeController")
	}
	selector, err := decodeSelector(declared)
	if err != nil {
		return nil, fmt.Errorf("spec.selector is not valid: %w", err)
	}
	if selector.Empty() {
		return nil, errors.New("spec.selector selects everything: it must have matchLabels or matchExpressions")
	}
	return selector, nil
}

// observe returns the children that the parent has. It releases those that the selector does not select anymore, and adopts
// those that it selects and that no one controls.
func (f *family) observe(ctx context.Context, t *kopf.Task) (map[childKey]*unstructured.Unstructured, error) {
	all := map[childKey]*unstructured.Unstructured{}
	var problems []error
	isDeleting := f.parent.GetDeletionTimestamp() != nil
	for _, body := range t.Children() {
		child := &unstructured.Unstructured{Object: body.Raw()}
		switch {
		case !metav1.IsControlledBy(child, f.parent):
		case f.selector == nil && child.GetAnnotations()[decoratorAnnotation] != f.declared.Name:
		case f.selector == nil || f.selector.Matches(labels.Set(child.GetLabels())):
			all[keyOf(child)] = child
		case !isDeleting:
			problems = append(problems, f.release(ctx, t, child))
		}
	}
	if f.selector == nil || isDeleting {
		return all, errors.Join(problems...)
	}
	for _, found := range f.orphans.matching(f.parent.GetNamespace(), f.selector) {
		child, err := f.adopt(ctx, t, found)
		if child != nil {
			all[keyOf(child)] = child
		}
		problems = append(problems, err)
	}
	return all, errors.Join(problems...)
}

// release removes the owner reference of a child.
func (f *family) release(ctx context.Context, t *kopf.Task, child *unstructured.Unstructured) error {
	fresh, err := f.read(ctx, child.GroupVersionKind(), client.ObjectKeyFromObject(child), child.GetUID())
	if fresh == nil || err != nil {
		return err
	}
	isOurs := func(owner metav1.OwnerReference) bool { return owner.UID == f.parent.GetUID() }
	fresh.SetOwnerReferences(slices.DeleteFunc(fresh.GetOwnerReferences(), isOurs))
	t.Logger().Info("A child does not match the selector anymore. It is released.", "child", describe(child))
	if err := client.IgnoreNotFound(f.client.Update(ctx, fresh)); err != nil {
		return fmt.Errorf("the child %s cannot be released: %w", describe(child), err)
	}
	return nil
}

// adopt makes the parent the controller of an object without one. It returns nil if the object, or the parent, is not as the
// watches have shown it.
func (f *family) adopt(ctx context.Context, t *kopf.Task, found orphan) (*unstructured.Unstructured, error) {
	parent, err := f.read(ctx, f.parent.GroupVersionKind(), client.ObjectKeyFromObject(f.parent), f.parent.GetUID())
	if err != nil || parent == nil || parent.GetDeletionTimestamp() != nil {
		return nil, err
	}
	child, err := f.read(ctx, found.kind, found.NamespacedName, found.uid)
	if err != nil {
		return nil, err
	}
	if child == nil || child.GetDeletionTimestamp() != nil || metav1.GetControllerOf(child) != nil || !f.selector.Matches(labels.Set(child.GetLabels())) {
		f.orphans.remove(found.uid)
		return nil, nil //nolint:nilnil // it cannot be adopted anymore
	}
	t.Logger().Info("An object without a controller matches the selector. It is adopted.", "child", describe(child))
	child.SetOwnerReferences(append(child.GetOwnerReferences(), f.owner()))
	if err := f.client.Update(ctx, child); err != nil {
		return nil, fmt.Errorf("%s cannot be adopted: %w", describe(child), err)
	}
	f.orphans.remove(found.uid)
	return child, nil
}

// read returns the current version of an object, or nil if it does not exist anymore.
func (f *family) read(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName, uid types.UID) (*unstructured.Unstructured, error) {
	fresh := &unstructured.Unstructured{}
	fresh.SetGroupVersionKind(kind)
	err := f.client.Get(ctx, name, fresh)
	switch {
	case apierrors.IsNotFound(err), err == nil && fresh.GetUID() != uid:
		return nil, nil //nolint:nilnil // it is gone
	case err != nil:
		return nil, fmt.Errorf("the %s %s cannot be read: %w", kind.Kind, name, err)
	}
	return fresh, nil
}

func (f *family) owner() metav1.OwnerReference {
	return *metav1.NewControllerRef(f.parent, f.parent.GroupVersionKind())
}

// wanted returns the children of an answer as they must be. The last one counts of those with the same name.
func (f *family) wanted(children []*unstructured.Unstructured) (map[childKey]*unstructured.Unstructured, error) {
	all := map[childKey]*unstructured.Unstructured{}
	var problems []error
	for _, child := range children {
		if err := f.complete(child); err != nil {
			problems = append(problems, fmt.Errorf("the hook returns %s, %w", describe(child), err))
		}
		all[keyOf(child)] = child
	}
	return all, errors.Join(problems...)
}

// complete adds to a child what identifies it as one of the parent.
func (f *family) complete(child *unstructured.Unstructured) error {
	kind := f.kindOf(child.GroupVersionKind())
	namespace := f.parent.GetNamespace()
	switch {
	case kind == nil && f.declared.Kind == document.Composite:
		return errors.New("whose kind is not in childResources: add it, or its permissions, changes, and deletions are unknown")
	case kind == nil:
		return errors.New("whose kind is not in attachments: add it, or its permissions, changes, and deletions are unknown")
	case !kind.namespaced && namespace != "":
		return errors.New("which is in no namespace: an object in a namespace cannot own it")
	case !kind.namespaced:
		child.SetNamespace("")
	case child.GetNamespace() == "" && namespace == "":
		return errors.New("without a namespace: add metadata.namespace, because the parent has none")
	case child.GetNamespace() == "":
		child.SetNamespace(namespace)
	case namespace != "" && child.GetNamespace() != namespace:
		return fmt.Errorf("which is in the namespace %s: an object in %s cannot own it", child.GetNamespace(), namespace)
	}
	if f.selector == nil {
		setAnnotation(child, decoratorAnnotation, f.declared.Name)
		return nil
	}
	if f.declared.GenerateSelector && child.GetLabels()[generatedLabel] == "" {
		with := maps.Clone(child.GetLabels())
		if with == nil {
			with = map[string]string{}
		}
		with[generatedLabel] = string(f.parent.GetUID())
		child.SetLabels(with)
	}
	if !f.selector.Matches(labels.Set(child.GetLabels())) {
		return fmt.Errorf("whose labels do not match the selector of the parent, %s", f.selector)
	}
	return nil
}

func (f *family) kindOf(kind schema.GroupVersionKind) *childKind {
	for i := range f.kinds {
		if f.kinds[i].GroupVersionKind == kind {
			return &f.kinds[i]
		}
	}
	return nil
}

// manage makes the children those that are wanted: it deletes, creates, and updates. One that fails does not keep others.
func (f *family) manage(ctx context.Context, t *kopf.Task, observed, wanted map[childKey]*unstructured.Unstructured) error {
	var problems []error
	for key, child := range observed {
		if wanted[key] == nil && child.GetDeletionTimestamp() == nil {
			t.Logger().Info("A child is not wanted anymore. It is deleted.", "child", describe(child))
			problems = append(problems, f.remove(ctx, child))
		}
	}
	for key, child := range wanted {
		if existing := observed[key]; existing == nil {
			problems = append(problems, f.create(ctx, t, child))
		} else {
			problems = append(problems, f.update(ctx, t, existing, child))
		}
	}
	return errors.Join(problems...)
}

func (f *family) create(ctx context.Context, t *kopf.Task, wanted *unstructured.Unstructured) error {
	child, err := marked(wanted)
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(child, f.parent) {
		child.SetOwnerReferences(append(child.GetOwnerReferences(), f.owner()))
	}
	t.Logger().Info("A child is created.", "child", describe(child))
	err = f.client.Create(ctx, child)
	if !apierrors.IsAlreadyExists(err) {
		return wrapped(err, "the child %s cannot be created", describe(child))
	}
	// The watch can be late. Otherwise, it is the object of another owner, or of none.
	existing := &unstructured.Unstructured{}
	existing.SetGroupVersionKind(child.GroupVersionKind())
	err = f.client.Get(ctx, client.ObjectKeyFromObject(child), existing)
	switch owner := metav1.GetControllerOf(existing); {
	case err != nil:
		return wrapped(client.IgnoreNotFound(err), "the child %s exists, and cannot be read", describe(child))
	case owner == nil:
		return fmt.Errorf("the child %s exists, and belongs to no controller: delete it, or give the child another name", describe(child))
	case owner.UID != f.parent.GetUID():
		return fmt.Errorf("the child %s exists, and belongs to the %s %s: give the child another name", describe(child), owner.Kind, owner.Name)
	case f.selector == nil && existing.GetAnnotations()[decoratorAnnotation] != f.declared.Name:
		return fmt.Errorf("the child %s exists, and belongs to another controller of its owner: give the child another name", describe(child))
	}
	return nil
}

func (f *family) update(ctx context.Context, t *kopf.Task, existing, wanted *unstructured.Unstructured) error {
	if existing.GetDeletionTimestamp() != nil {
		return nil // it is created again when it is gone
	}
	child, changed, err := updated(existing, wanted)
	if err != nil || !changed {
		return wrapped(err, "the child %s cannot be compared", describe(existing))
	}
	switch f.kindOf(child.GroupVersionKind()).method {
	case document.InPlace:
		t.Logger().Info("A child is updated.", "child", describe(child))
		err := f.client.Update(ctx, child)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // the watch shows another version soon
		}
		return wrapped(err, "the child %s cannot be updated", describe(child))
	case document.Recreate:
		t.Logger().Info("A child must change. It is deleted, and created again.", "child", describe(child))
		return f.remove(ctx, existing)
	default: // until another client deletes it
		return nil
	}
}

// remove deletes a child. The watch shows when it is gone.
func (f *family) remove(ctx context.Context, child *unstructured.Unstructured) error {
	uid := child.GetUID()
	err := f.client.Delete(ctx, child, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsConflict(err) {
		return nil // another object has its name
	}
	return wrapped(client.IgnoreNotFound(err), "the child %s cannot be deleted", describe(child))
}

// wrapped returns an error with what it is about, or nil for nil.
func wrapped(err error, format string, values ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(values, err)...)
}

// describe names an object in a message.
func describe(obj *unstructured.Unstructured) string {
	name := obj.GetName()
	if namespace := obj.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return obj.GetKind() + " " + name
}
