package kopftest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A directory has files that the developer does not think of, so the error names the file.
func TestErrorsOfDefinitionsNameTheFile(t *testing.T) {
	const valid = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: shops.example.com}, spec: {
		group: example.com, scope: Namespaced, names: {plural: shops, singular: shop, kind: Shop, listKind: ShopList},
		versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`
	for name, test := range map[string]struct{ second, want string }{
		"it comes from a cluster": {strings.ReplaceAll(strings.Replace(valid, "{name: shops", "{resourceVersion: '7', name: shops", 1), "shop", "web"), "remove what the server has added"},
		"it is there twice":       {valid, "another file has it, too"},
		"it is invalid":           {strings.ReplaceAll(strings.Replace(valid, "name: v1", "name: 1", 1), "shop", "web"), "the definition webs.example.com cannot be installed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"a.yaml": valid, "b.yaml": test.second} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			found, err := definitionsIn([]string{dir})
			if err != nil || len(found) != 2 {
				t.Fatalf("got %v, %v", found, err)
			}
			server, err := client.New(NewAPIServer(t).Config(), client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Create(t.Context(), found[0].Unstructured); err != nil {
				t.Fatal(err)
			}
			err = found[1].refused(server.Create(t.Context(), found[1].Unstructured))
			if !strings.HasPrefix(err.Error(), filepath.Join(dir, "b.yaml")+": ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
