package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// leaves are the fields of an object that have one owner each, by their names as people write them.
type leaves map[string]any

// unstable are the fields that every write changes, and those that are not a part of what is wanted.
var unstable = []string{
	"status", "metadata.managedFields", "metadata.resourceVersion", "metadata.generation", "metadata.uid", "metadata.creationTimestamp", "metadata.deletionTimestamp",
	"metadata.annotations[" + convergence.MarksAnnotation + "]", "metadata.annotations[deprecated.daemonset.template.generation]",
}

// leavesOf returns the leaves of an object of a kind.
func (c *catalog) leavesOf(k kind, u *unstructured.Unstructured) leaves {
	all := leaves{}
	c.visit(k, u, func(name string, _ []any, value any) { all[name] = value })
	return all
}

// visit calls the function for each leaf, with the way to it: fields and indices.
func (c *catalog) visit(k kind, u *unstructured.Unstructured, do func(name string, way []any, value any)) {
	c.walk("", nil, c.schemas[k.definition], u.Object, do)
}

func (c *catalog) walk(at string, way []any, s *spec.Schema, value any, do func(name string, way []any, value any)) {
	if slices.Contains(unstable, at) {
		return
	}
	atomic, isGranular := isAtomic(s), s.Extensions["x-kubernetes-map-type"] == "granular"
	_, s = c.resolve(s)
	atomic = atomic || isAtomic(s) && !isGranular
	switch inside := value.(type) {
	case map[string]any:
		if atomic || len(inside) == 0 || len(s.Properties) == 0 && s.AdditionalProperties == nil {
			break
		}
		for _, field := range slices.Sorted(maps.Keys(inside)) {
			c.walk(join(at, field), append(slices.Clip(way), field), c.field(s, field), inside[field], do)
		}
		return
	case []any:
		keys := keysOf(s)
		if len(keys) == 0 && s.Extensions["x-kubernetes-list-type"] != "set" || len(inside) == 0 {
			break
		}
		for i, item := range inside {
			to := append(slices.Clip(way), i)
			if len(keys) == 0 {
				do(fmt.Sprintf("%s[%v]", at, item), to, item)
			} else {
				c.walk(at+"["+selectorOf(item, keys)+"]", to, s.Items.Schema, item, do)
			}
		}
		return
	}
	do(at, way, value)
}

func isAtomic(s *spec.Schema) bool {
	return s.Extensions["x-kubernetes-map-type"] == "atomic" || s.Extensions["x-kubernetes-list-type"] == "atomic"
}

func (c *catalog) field(s *spec.Schema, name string) *spec.Schema {
	if of, has := s.Properties[name]; has {
		return &of
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		return s.AdditionalProperties.Schema
	}
	return &spec.Schema{}
}

func join(at, field string) string {
	switch {
	case strings.ContainsAny(field, "./"):
		return at + "[" + field + "]"
	case at == "":
		return field
	}
	return at + "." + field
}

func selectorOf(item any, keys []string) string {
	mapping, _ := item.(map[string]any)
	var texts []string
	for _, key := range slices.Sorted(slices.Values(keys)) {
		texts = append(texts, fmt.Sprintf("%s=%v", key, mapping[key]))
	}
	return strings.Join(texts, ",")
}
