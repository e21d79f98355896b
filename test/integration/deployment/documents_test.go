package deployment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheDefinitionIsThatOfTheExamples(t *testing.T) {
	if read(t, "config/crd/example/kopfexamples.yaml") != read(t, "examples/crd/kopfexamples.yaml") {
		t.Error("config/crd/example and examples/crd differ: copy the file")
	}
}

func TestThePermissionsAreDocumented(t *testing.T) {
	documented := read(t, "docs/permissions.md")
	for _, path := range []string{"config/rbac/cluster/role.yaml", "config/rbac/base/leader_election.yaml"} {
		_, role, _ := strings.Cut(read(t, path), "apiVersion")
		role, _, _ = strings.Cut(role, "---\n")
		if !strings.Contains(documented, "```yaml\napiVersion"+role+"```\n") {
			t.Errorf("docs/permissions.md does not show the role of %s as it is", path)
		}
	}
}

func TestRolesHaveNoWildcards(t *testing.T) {
	for _, dir := range []string{measured(t), "config/namespaced"} {
		all := manifests(t, dir)
		account := one(t, "ServiceAccount", all)
		for _, p := range given(t, "system:serviceaccount:"+account.GetNamespace()+":"+account.GetName(), all) {
			if strings.Contains(p.verb+p.group+p.resource+p.name, "*") {
				t.Errorf("%s: %+v", dir, p)
			}
		}
	}
}

// read is the text of a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
