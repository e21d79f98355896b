package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func checkout(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoadSortsPackagesAndSharesTypes(t *testing.T) {
	tree, err := Load(t.Context(), checkout(t, map[string]string{
		"go.mod":             "module example.com/m\n\ngo 1.26\n",
		"pkg/kopf/a.go":      "package kopf\n\nimport (\n\t\"io\"\n\n\t\"example.com/m/pkg/z\"\n)\n\ntype Alias = z.Type\n\nvar Reader io.Reader\n",
		"pkg/kopf/a_test.go": "package kopf\n\nbroken\n",
		"pkg/z/z.go":         "package z\n\ntype Type struct{}\n",
	}), "./pkg/kopf")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, pkg := range tree.Packages {
		paths = append(paths, pkg.Path)
	}
	if got := strings.Join(paths, " "); got != "pkg/z pkg/kopf" || tree.Module != "example.com/m" {
		t.Errorf("got the packages %s of %s", got, tree.Module)
	}
	alias, declared := tree.Package("pkg/kopf").Types.Scope().Lookup("Alias"), tree.Package("pkg/z").Types.Scope().Lookup("Type")
	if !strings.HasSuffix(declared.Type().String(), "pkg/z.Type") || alias.Type().Underlying() != declared.Type().Underlying() {
		t.Errorf("the alias of %v is %v", declared, alias)
	}
	if got := tree.File(declared.Pos()); got != "pkg/z/z.go" {
		t.Errorf("the type is declared in %s", got)
	}
	if promised := tree.Promised(); len(promised) != 1 || promised[0].Path != "pkg/kopf" || tree.Package("pkg/none") != nil {
		t.Errorf("got %v", promised)
	}
}

func TestLoadReportsErrors(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no module":                       {map[string]string{"a.go": "package a\n"}, "main module"},
		"a package that does not compile": {map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n", "a.go": "package a\n\nvar A int = \"\"\n"}, "a.go:3"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Load(t.Context(), checkout(t, test.files), "./..."); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
