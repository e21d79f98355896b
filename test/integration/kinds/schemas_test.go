package kinds

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// kind is a built-in kind that can be a child.
type kind struct {
	schema.GroupVersionKind
	namespaced bool
	// definition is the name of its schema.
	definition string
}

// catalog has the built-in kinds and the schemas of their definitions.
type catalog struct {
	kinds   []kind
	schemas map[string]*spec.Schema
}

// newCatalog asks the API server which kinds it serves, except those of resource definitions.
func newCatalog(t *testing.T) *catalog {
	t.Helper()
	g := gomega.NewWithT(t)
	api, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	custom := customGroups(t)
	_, lists, err := api.ServerGroupsAndResources()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	c, root := &catalog{schemas: map[string]*spec.Schema{}}, openapi3.NewRoot(api.OpenAPIV3())
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		if custom[version.Group] {
			continue
		}
		document, err := root.GVSpec(version)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		maps.Copy(c.schemas, document.Components.Schemas)
		for _, resource := range list.APIResources {
			if isChild(resource) {
				gvk := version.WithKind(resource.Kind)
				c.kinds = append(c.kinds, kind{gvk, resource.Namespaced, definitionOf(gvk, document.Components.Schemas)})
			}
		}
	}
	slices.SortFunc(c.kinds, func(a, b kind) int { return cmp.Compare(a.String(), b.String()) })
	return c
}

// customGroups returns the groups of resource definitions.
func customGroups(t *testing.T) map[string]bool {
	t.Helper()
	var list apiextensionsv1.CustomResourceDefinitionList
	gomega.NewWithT(t).Expect(cluster.Client().List(t.Context(), &list)).To(gomega.Succeed())
	groups := map[string]bool{}
	for _, definition := range list.Items {
		groups[definition.Spec.Group] = true
	}
	return groups
}

// isChild reports whether objects of a resource can be children: they are stored and watched.
func isChild(resource metav1.APIResource) bool {
	if strings.Contains(resource.Name, "/") {
		return false
	}
	for _, verb := range []string{"create", "get", "list", "watch", "patch", "delete"} {
		if !slices.Contains(resource.Verbs, verb) {
			return false
		}
	}
	return true
}

// definitionOf returns the name of the schema of a kind.
func definitionOf(gvk schema.GroupVersionKind, schemas map[string]*spec.Schema) string {
	for name, definition := range schemas {
		kinds, _ := definition.Extensions["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 {
			continue
		}
		of, _ := kinds[0].(map[string]any)
		if of["group"] == gvk.Group && of["version"] == gvk.Version && of["kind"] == gvk.Kind {
			return name
		}
	}
	return ""
}

// resolve follows a reference to a definition. The name is empty if the schema is not a definition.
func (c *catalog) resolve(s *spec.Schema) (name string, resolved *spec.Schema) {
	reference := s.Ref.String()
	if len(s.AllOf) == 1 {
		reference = s.AllOf[0].Ref.String()
	}
	if reference == "" {
		return "", s
	}
	full := reference[strings.LastIndex(reference, "/")+1:]
	definition := c.schemas[full]
	if definition == nil {
		panic(fmt.Sprint("there is no definition ", full))
	}
	return shortName(full), definition
}

// shortName returns the last three parts of the name of a definition: "core.v1.PodSpec".
func shortName(full string) string {
	parts := strings.Split(full, ".")
	return strings.Join(parts[max(0, len(parts)-3):], ".")
}

// keysOf returns the keys of the items of a list.
func keysOf(s *spec.Schema) []string {
	found, _ := s.Extensions["x-kubernetes-list-map-keys"].([]any)
	var keys []string
	for _, key := range found {
		keys = append(keys, fmt.Sprint(key))
	}
	return keys
}
