package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const shops = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: shops.example.com},
  spec: {group: example.com, names: {kind: Shop}}}
`

var webs = strings.NewReplacer("shops", "webs", "Shop", "Web").Replace(shops)

// write creates files in a temporary folder, which becomes the current one.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		path := filepath.FromSlash(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDefinitionsAreReadFromFoldersAndAllBelow(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		read  []string
		want  []string
	}{
		"a file":                     {map[string]string{"crd.yaml": shops + "---\n" + webs}, []string{"crd.yaml"}, []string{"shops.example.com", "webs.example.com"}},
		"a folder":                   {map[string]string{"crd/a.yaml": shops, "crd/b.yml": webs}, []string{"crd"}, []string{"shops.example.com", "webs.example.com"}},
		"the folders below":          {map[string]string{"crd/bases/v1/a.yaml": shops, "crd/b.yaml": webs}, []string{"crd"}, []string{"webs.example.com", "shops.example.com"}},
		"a file that is named twice": {map[string]string{"crd/bases/a.yaml": shops}, []string{"crd", "crd/bases"}, []string{"shops.example.com"}},
		"a copy":                     {map[string]string{"a/crd.yaml": shops, "b/crd.yaml": "# copied\n" + shops}, []string{"a", "b"}, []string{"shops.example.com"}},
		"other content": {map[string]string{
			"crd/README.md": "# no YAML: [", "crd/kustomization.yaml": "resources: [a.yaml]", "crd/list.json": "[1, 2]", "crd/empty.yaml": "---\n---\n", "crd/a.yaml": shops,
			"crd/patches/webhook.yaml": "{kind: CustomResourceDefinition, metadata: {name: shops.example.com}, spec: {conversion: {strategy: Webhook}}}",
		}, []string{"crd"}, []string{"shops.example.com"}},
		"nothing": {map[string]string{"crd/doc.go": "package crd"}, []string{"crd"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, test.files)
			found, err := Definitions(test.read...)
			var names []string
			for _, one := range found {
				names = append(names, one.GetName())
			}
			if err != nil || !slices.Equal(names, test.want) {
				t.Errorf("got %v, %v, want %v", names, err, test.want)
			}
		})
	}
}

func TestALinkToAFolderIsFollowedIfItIsNamed(t *testing.T) {
	write(t, map[string]string{"shared/crd/a.yaml": shops, "crds/b.yaml": webs})
	for link, target := range map[string]string{"crd": filepath.Join("shared", "crd"), filepath.Join("crds", "below"): filepath.Join("..", "crds")} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Definitions("crd", "crds")
	if want := []string{filepath.Join("crd", "a.yaml"), filepath.Join("crds", "b.yaml")}; err != nil || !slices.Equal(Files(found), want) {
		t.Errorf("got %v, %v, want %v", Files(found), err, want)
	}
}

// A folder has files that the developer does not think of, so the error names the file.
func TestErrorsOfDefinitionsNameTheFile(t *testing.T) {
	for name, test := range map[string]struct{ second, want string }{
		"it comes from a cluster":   {strings.Replace(webs, "{name: webs", "{resourceVersion: '7', name: webs", 1), "remove what the server has added"},
		"another file has it, too":  {strings.Replace(shops, "Shop", "Store", 1), "another definition of shops.example.com is in " + filepath.Join("crd", "a.yaml")},
		"it is not valid":           {"{", "did not find expected node content"},
		"a line of it is not valid": {shops + "---\n\tkind: Shop", "found character that cannot start any token"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, map[string]string{"crd/a.yaml": shops, "crd/v2/b.yaml": test.second})
			_, err := Definitions("crd")
			if err == nil || !strings.HasPrefix(err.Error(), filepath.Join("crd", "v2", "b.yaml")+": ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFoldersWithoutDefinitions(t *testing.T) {
	write(t, map[string]string{"a/crd.yaml": shops, "b/doc.go": "package b"})
	if found, err := Definitions("a", "b"); err != nil || len(found) != 1 {
		t.Errorf("got %v, %v", found, err)
	}
	if _, err := Require("a", "b"); err == nil || err.Error() != "b: there are no custom resource definitions" {
		t.Errorf("got %v", err)
	}
	if found, err := Require("a", filepath.Join("a", "crd.yaml")); err != nil || len(found) != 1 {
		t.Errorf("got %v, %v", found, err)
	}
	if _, err := Definitions(filepath.Join(t.TempDir(), "nowhere")); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

func TestObjectsAreNothingElse(t *testing.T) {
	found, err := Objects([]byte("kind: A\nspec: {size: 1}\n---\n---\nkind: B\n"))
	if err != nil || len(found) != 2 || found[1].GetKind() != "B" {
		t.Errorf("got %v, %v", found, err)
	}
	if size := found[0].Object["spec"].(map[string]any)["size"]; size != int64(1) {
		t.Errorf("got a %T", size)
	}
	if _, err := Objects([]byte("[1, 2]")); err == nil {
		t.Error("a list is accepted")
	}
}
