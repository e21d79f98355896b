package manifests

import (
	"slices"
	"strings"
	"testing"
)

const shop = "apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: one}\n"

func TestObjectsAreReadFromFoldersAndAllBelow(t *testing.T) {
	write(t, map[string]string{
		"samples/a.yaml":             shop + "---\n" + strings.Replace(shop, "one", "two", 1),
		"samples/more/b.yml":         strings.Replace(shop, "one", "three", 1),
		"samples/README.md":          "# no YAML: [",
		"samples/kustomization.yaml": "resources: [a.yaml]",
		"samples/more/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" +
			"resources: [b.yml]",
	})
	objects, err := Read("samples")
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	if err != nil || !slices.Equal(names, []string{"one", "two", "three"}) {
		t.Errorf("got %v, %v", names, err)
	}
}

func TestUnreadableObjectsAreNamed(t *testing.T) {
	write(t, map[string]string{"broken.yaml": "kind: [", "list.yaml": "[1, 2]"})
	for _, path := range []string{"broken.yaml", "list.yaml", "nothing.yaml"} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}
