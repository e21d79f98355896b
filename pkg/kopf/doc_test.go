package kopf

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documentation returns the documentation of the package, as go doc reads it.
func documentation(t *testing.T) *doc.Package {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(fset, files, "github.com/kopf-go/kopf/pkg/kopf")
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

// exported returns the names of the package.
func exported(pkg *doc.Package) []string {
	var names []string
	add := func(functions []*doc.Func, values ...*doc.Value) {
		for _, function := range functions {
			names = append(names, function.Name)
		}
		for _, value := range values {
			names = append(names, value.Names...)
		}
	}
	add(pkg.Funcs, append(pkg.Consts, pkg.Vars...)...)
	for _, declared := range pkg.Types {
		names = append(names, declared.Name)
		add(declared.Funcs, append(declared.Consts, declared.Vars...)...)
	}
	return names
}

// The tour groups by purpose what go doc sorts by alphabet.
func TestTheTourHasEveryExportedName(t *testing.T) {
	pkg := documentation(t)
	names := exported(pkg)
	if len(names) < 100 {
		t.Fatalf("only %d names were found", len(names))
	}
	for _, name := range names {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(pkg.Doc) {
			t.Errorf("doc.go does not mention %s: add it where users look for it", name)
		}
	}
}

// go doc shows the methods of the arguments, also those that are written once for all kinds.
func TestArgumentsShowTheirMethods(t *testing.T) {
	want := map[string][]string{
		"Change": {"Name", "Spec", "Patch", "Retry", "SetResult", "Subhandler", "DecodeOld"}, "WatchEvent": {"Name", "Patch", "Type"},
		"Task": {"Name", "Retry", "Wait"}, "Tick": {"Name", "Retry", "Stopped"}, "Indexed": {"Name", "Retry"},
		"ChildChange": {"Name", "Patch", "Retry", "Child"}, "Drift": {"Name", "Patch", "Fields"}, "Admission": {"Name", "Patch", "Warn"},
	}
	for _, declared := range documentation(t).Types {
		for _, name := range want[declared.Name] {
			if !slices.ContainsFunc(declared.Methods, func(m *doc.Func) bool { return m.Name == name && m.Doc != "" }) {
				t.Errorf("the documentation of %s does not show the method %s", declared.Name, name)
			}
		}
		delete(want, declared.Name)
	}
	if len(want) > 0 {
		t.Errorf("there are no types %v", want)
	}
}

// An alias leads to what it stands for, because go doc does not show its methods.
func TestCommentsOfAliasesLeadToTheMethods(t *testing.T) {
	for _, declared := range documentation(t).Types {
		if declared.Name == "Index" && !strings.Contains(declared.Doc, "index.Index") {
			t.Errorf("the comment of %s does not mention index.Index, which has its methods", declared.Name)
		}
	}
}

// Examples are the part of the documentation that the compiler checks.
func TestEveryFunctionIsInAnExample(t *testing.T) {
	names, err := filepath.Glob("example*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var examples strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		examples.Write(text)
	}
	pkg := documentation(t)
	functions := pkg.Funcs
	for _, declared := range pkg.Types {
		functions = append(functions, declared.Funcs...)
	}
	for _, function := range functions {
		if !regexp.MustCompile(`\bkopf\.` + function.Name + `\b`).MatchString(examples.String()) {
			t.Errorf("no example calls kopf.%s", function.Name)
		}
	}
}
