package kinds

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// specimen is a child of a kind.
type specimen struct {
	kind
	// ours is what the function returns, and theirs what another client makes of it.
	ours, theirs *unstructured.Unstructured
	// live is the child as the operator has created it.
	live *unstructured.Unstructured
	// edit is the child as another client has changed it last.
	edit *unstructured.Unstructured
}

// specimens returns children of a kind that have all fields together.
func (c *catalog) specimens(k kind, namespace string) (all []*specimen) {
	ours, theirs := c.generate(k, namespace, false), c.generate(k, namespace, true)
	for i := range ours {
		all = append(all, &specimen{kind: k, ours: ours[i], theirs: theirs[i]})
	}
	return all
}

func (c *catalog) generate(k kind, namespace string, edited bool) (all []*unstructured.Unstructured) {
	g := &generator{catalog: c, kind: k.Kind, edited: edited}
	for i, content := range g.objects(k) {
		place(content, "$namespace", namespace)
		place(content, "$n", fmt.Sprint(i))
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(k.GroupVersionKind)
		u.SetName(k.name(i))
		if k.Kind == "Namespace" { // it stays forever
			u.SetName(namespace + "-child")
		}
		if k.namespaced {
			u.SetNamespace(namespace)
		}
		all = append(all, u)
	}
	return all
}

// place replaces a text in all texts of a value.
func place(value any, from, to string) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = place(value[key], from, to)
		}
	case []any:
		for i := range value {
			value[i] = place(value[i], from, to)
		}
	case string:
		return strings.ReplaceAll(value, from, to)
	}
	return value
}

// name returns the name of an object of the kind. A few kinds say what it must be.
func (k kind) name(n int) string {
	switch k.Kind {
	case "IPAddress":
		return fmt.Sprint("10.99.0.", n+1)
	case "CustomResourceDefinition":
		return fmt.Sprintf("widgets%d.sweep.example.com", n)
	case "APIService":
		return fmt.Sprintf("v1.sweep%d.example.com", n)
	case "ClusterTrustBundle":
		return fmt.Sprintf("example.com:signer:bundle-%d", n)
	}
	return fmt.Sprintf("%s-%d", k.parent(), n)
}

// parent returns the name of the parent of the children of the kind.
func (k kind) parent() string {
	return strings.Trim(strings.ToLower(strings.ReplaceAll(k.Kind+"."+k.Version+"."+k.Group, ".", "-")), "-")
}

// edited returns what another client makes of the child: all fields of the function are changed, except
// those that the API server lets no client change.
func (s *specimen) edited(current *unstructured.Unstructured) *unstructured.Unstructured {
	u := current.DeepCopy()
	overlay(u.Object, s.ours.Object, s.theirs.Object)
	for _, path := range s.immutable() {
		transfer(u.Object, current.Object, strings.Split(path, "."))
	}
	for _, path := range mutable[s.Kind] {
		transfer(u.Object, s.theirs.Object, strings.Split(path, "."))
	}
	return u
}

// immutable returns the fields that the API server lets no client change.
func (s *specimen) immutable() []string {
	if s.ours.Object["immutable"] == true {
		return []string{"data", "binaryData", "stringData"}
	}
	if found, has := immutable[s.kind.String()]; has {
		return found
	}
	return immutable[s.Kind]
}

func (s *specimen) key() convergence.ChildKey {
	return convergence.ChildKey{GroupKind: s.GroupKind(), Namespace: s.ours.GetNamespace(), Name: s.ours.GetName()}
}

func (k kind) String() string { return k.Kind + "." + k.Version + "." + k.Group }

// overlay changes what the function has returned to what another client wants.
func overlay(object, ours, theirs map[string]any) {
	for key, value := range theirs {
		if _, has := ours[key]; !has {
			object[key] = value
		}
	}
	for key, our := range ours {
		their, has := theirs[key]
		inside, isMapping := object[key].(map[string]any)
		our, _ := our.(map[string]any)
		below, _ := their.(map[string]any)
		switch {
		case key == "ownerReferences": // not that to the parent
			object[key] = append(slices.Clone(their.([]any)), object[key].([]any)[1:]...)
		case !has:
			delete(object, key)
		case isMapping && our != nil && below != nil:
			overlay(inside, our, below)
		default:
			object[key] = runtime.DeepCopyJSONValue(their)
		}
	}
}

// transfer sets a field to what another object has. A star stands for all items of a list.
func transfer(to, from any, path []string) {
	if path[0] == "*" {
		items, _ := to.([]any)
		others, _ := from.([]any)
		for i := range min(len(items), len(others)) {
			transfer(items[i], others[i], path[1:])
		}
		return
	}
	object, isObject := to.(map[string]any)
	other, _ := from.(map[string]any)
	value, has := other[path[0]]
	switch {
	case !isObject:
	case len(path) > 1:
		transfer(object[path[0]], value, path[1:])
	case has:
		object[path[0]] = runtime.DeepCopyJSONValue(value)
	default:
		delete(object, path[0])
	}
}
