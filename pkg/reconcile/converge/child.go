package converge

import (
	"cmp"
	"context"
	"encoding/base64"
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

// compareKeys orders children.
func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.GroupKind.String(), b.GroupKind.String()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// child is an object that a handler wants.
type child struct {
	Key
	resource selector.Resource
	wave     int
	keep     bool
	// content is the object as the handler wants it, without what the operator adds.
	content map[string]any
	// problem is why the resource of the child is unknown.
	problem error
}

// systemFields are the fields of metadata that only the API server writes.
var systemFields = []string{"creationTimestamp", "resourceVersion", "uid", "generation", "managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}

// readChild reads an object as a handler returns it, without what is only left over from a Go type.
// If its resource cannot be found, the child has a problem: the other children can be applied
// nevertheless.
func readChild(ctx context.Context, obj client.Object, scheme *runtime.Scheme, parent Parent, resources *watch.Kinds) (*child, error) {
	u, err := toUnstructured(obj, scheme)
	if err != nil {
		return nil, err
	}
	kind := u.GroupVersionKind().GroupKind()
	switch {
	case u.GetName() == "" && u.GetGenerateName() != "":
		return nil, fmt.Errorf("a child of the kind %s has a generateName: each call would create another one, so set a name that is always the same", kind)
	case u.GetName() == "":
		return nil, fmt.Errorf("a child of the kind %s has no name: set one that is always the same", kind)
	}
	annotations := u.GetAnnotations()
	ch := &child{content: u.Object, keep: isKept(annotations)}
	if text, has := annotations[convergence.WaveAnnotation]; has {
		ch.wave, err = strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("the child %q has an invalid wave: %w", u.GetName(), err)
		}
	}
	delete(annotations, convergence.WaveAnnotation)
	delete(annotations, convergence.MarksAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	u.SetAnnotations(annotations)
	delete(ch.content, "status")
	for _, field := range systemFields {
		unstructured.RemoveNestedField(ch.content, "metadata", field)
	}
	removeNulls(ch.content)
	if kind == (schema.GroupKind{Kind: "Secret"}) {
		encodeText(ch.content)
	}
	if at, has := podSpecs[kind]; has {
		found, _, _ := unstructured.NestedFieldNoCopy(ch.content, at...)
		if spec, ok := found.(map[string]any); ok {
			renameAccount(spec)
		}
	}

	ch.resource, ch.problem = resources.Find(ctx, u.GroupVersionKind())
	switch {
	case ch.problem == nil && !ch.resource.Namespaced:
		u.SetNamespace("")
	case u.GetNamespace() == "":
		u.SetNamespace(parent.Key.Namespace)
	}
	if ch.problem == nil && ch.resource.Namespaced && u.GetNamespace() == "" {
		return nil, fmt.Errorf("the child %s has no namespace, and its parent is cluster-scoped: set one", convergence.Describe(kind, "", u.GetName()))
	}
	ch.Key = keyOf(u)
	return ch, nil
}

// definitionKind is the kind of resource definitions.
var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// defines reports whether the child is the definition of a kind.
func (ch *child) defines(kind schema.GroupKind) bool {
	group, _, _ := unstructured.NestedString(ch.content, "spec", "group")
	name, _, _ := unstructured.NestedString(ch.content, "spec", "names", "kind")
	return ch.GroupKind == definitionKind && kind == schema.GroupKind{Group: group, Kind: name}
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

// isKept reports whether an object must stay when it is not wanted anymore.
func isKept(annotations map[string]string) bool {
	value, ok := annotations[convergence.KeepAnnotation]
	return ok && value != "false"
}

// removeNulls removes the fields without a value.
func removeNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			if item == nil {
				delete(value, key)
			} else {
				removeNulls(item)
			}
		}
	case []any:
		for _, item := range value {
			removeNulls(item)
		}
	}
}

// The API server stores some fields as others, which then have the value, and are what other clients change. So the
// operator could neither see what others change, nor change the value itself. These fields are applied, and compared,
// as they are stored. What the API server would refuse stays as it is. A test looks for such fields in all built-in
// kinds.

// podSpecs are where the built-in kinds have the spec of a pod.
var podSpecs = map[schema.GroupKind][]string{
	{Kind: "Pod"}:                        {"spec"},
	{Kind: "PodTemplate"}:                {"template", "spec"},
	{Kind: "ReplicationController"}:      {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template", "spec"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template", "spec"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template", "spec"},
}

// encodeText replaces the stringData of a Secret by data. The API server never returns stringData.
func encodeText(secret map[string]any) {
	texts, found, err := unstructured.NestedStringMap(secret, "stringData")
	data, _, dataErr := unstructured.NestedMap(secret, "data")
	if !found || err != nil || dataErr != nil {
		return
	}
	delete(secret, "stringData")
	if len(texts) == 0 {
		return
	}
	if data == nil {
		data = map[string]any{}
	}
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	secret["data"] = data
}

// renameAccount replaces the serviceAccount of the spec of a pod by serviceAccountName, of which the API server
// makes it a copy.
func renameAccount(spec map[string]any) {
	former, found := spec["serviceAccount"].(string)
	if !found {
		return
	}
	delete(spec, "serviceAccount")
	name, _ := spec["serviceAccountName"].(string)
	if name == "" {
		spec["serviceAccountName"] = former
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

func (ch *child) rank() int {
	i := slices.Index(kindOrder, ch.GroupKind)
	if i >= 0 {
		return i
	}
	return len(kindOrder)
}
