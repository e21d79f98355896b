package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEveryExampleIsExecuted keeps examples from rotting: test/e2e runs them as programs, or they
// have tests, which make test runs.
func TestEveryExampleIsExecuted(t *testing.T) {
	executed := executedExamples(t)
	index, makefile := readFromRoot(t, "examples/README.md"), readFromRoot(t, "Makefile")
	folders, err := os.ReadDir(filepath.Join(root(t), "examples"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		name := folder.Name()
		if !folder.IsDir() || name == "crd" { // the definitions of the handled resources
			continue
		}
		if !strings.Contains(index, "\n| ["+name+"]("+name) {
			t.Errorf("examples/README.md does not list %s", name)
		}
		if slices.Contains(executed, name) {
			continue
		}
		dir := filepath.Join(root(t), "examples", name)
		if !hasTests(t, dir) {
			t.Errorf("examples/%s has no scenario in test/e2e/main_test.go, and no tests", name)
		}
		if isModule(dir) && !strings.Contains(makefile, "go -C examples/"+name+" test ") {
			t.Errorf("examples/%s is a separate module, and no target of the Makefile runs its tests", name)
		}
	}
}

// executedExamples returns the names of the scenarios of test/e2e.
func executedExamples(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", readFromRoot(t, "test/e2e/main_test.go"), 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		declared, isVariable := node.(*ast.ValueSpec)
		if !isVariable || declared.Names[0].Name != "scenarios" {
			return true
		}
		for _, element := range declared.Values[0].(*ast.CompositeLit).Elts {
			name, err := strconv.Unquote(element.(*ast.KeyValueExpr).Key.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		return false
	})
	if len(names) == 0 {
		t.Fatal("test/e2e/main_test.go has no scenarios")
	}
	return names
}

func hasTests(t *testing.T, dir string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		found = found || strings.HasSuffix(path, "_test.go")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
