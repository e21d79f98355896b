package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unfinished matches the marks of work that was left for later.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)

// synctest is the import of the package for bubbles of virtual time.
const synctest = `"testing/synctest"`

func TestSourcesHaveNoForbiddenParts(t *testing.T) {
	for _, pkg := range list(t) {
		described, bubbles := false, slices.ContainsFunc(pkg.files(), func(path string) bool { return mentions(t, path, synctest) })
		for _, path := range pkg.files() {
			fileset := token.NewFileSet()
			file, err := parser.ParseFile(fileset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			described = described || file.Doc != nil
			for _, found := range findings(file, strings.HasSuffix(path, "_test.go"), bubbles) {
				t.Errorf("%s: %s", fileset.Position(found.pos), found.text)
			}
		}
		if !described {
			t.Errorf("%s has no package comment: describe its purpose in doc.go", pkg.ImportPath)
		}
	}
}

// largest is the size of the largest file that may be committed: measured data for tests. A
// larger one is a compiled program.
const largest = 1 << 20

func TestNoLargeFileIsCommitted(t *testing.T) {
	listed, err := exec.Command("git", "-C", root(t), "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		if info, err := os.Stat(filepath.Join(root(t), path)); err == nil && info.Size() > largest {
			t.Errorf("%s has %d bytes: is it a program?", path, info.Size())
		}
	}
}

// mentions reports whether the file contains the text.
func mentions(t *testing.T, path, text string) bool {
	content, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return strings.Contains(string(content), text)
}

// finding is a part of a file that is not allowed.
type finding struct {
	pos  token.Pos
	text string
}

// findings checks one file. In a package whose tests use bubbles of virtual time,
// sleeping makes that time pass, also in helpers in other files.
func findings(file *ast.File, isTest, bubbles bool) []finding {
	var found []finding
	for _, group := range file.Comments {
		if mark := unfinished.FindString(group.Text()); mark != "" {
			found = append(found, finding{group.Pos(), mark + ": do it now, or write an issue"})
		}
	}
	fuzzing := declaresFuzzTarget(file)
	for _, declared := range file.Decls {
		// A fuzz target, or its helper, skips inputs, not tests.
		honest := !isTest || fuzzing && !isTestFunction(declared)
		ast.Inspect(declared, func(node ast.Node) bool {
			switch {
			case isCall(node, []string{"time"}, "Sleep") && !(isTest && bubbles):
				found = append(found, finding{node.Pos(), "time.Sleep: wait for a condition, or use a synctest bubble"})
			case isCall(node, []string{"t", "b", "tb", "f", "ginkgo"}, "Skip", "Skipf", "SkipNow") && !honest:
				found = append(found, finding{node.Pos(), "a skipped test proves nothing: make it run, or delete it"})
			}
			return true
		})
	}
	return found
}

func imports(file *ast.File, path string) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool { return spec.Path.Value == path })
}

func declaresFuzzTarget(file *ast.File) bool {
	return slices.ContainsFunc(file.Decls, func(declared ast.Decl) bool { return isNamed(declared, "Fuzz") })
}

func isTestFunction(declared ast.Decl) bool { return isNamed(declared, "Test", "Benchmark", "Example") }

func isNamed(declared ast.Decl, prefixes ...string) bool {
	function, ok := declared.(*ast.FuncDecl)
	return ok && slices.ContainsFunc(prefixes, func(prefix string) bool {
		return strings.HasPrefix(function.Name.Name, prefix)
	})
}

// isCall reports whether the node is a call of one of the functions or methods.
func isCall(node ast.Node, of []string, names ...string) bool {
	call, ok := node.(*ast.CallExpr)
	if !ok {
		return false
	}
	selected, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	owner, ok := selected.X.(*ast.Ident)
	return ok && slices.Contains(of, owner.Name) && slices.Contains(names, selected.Sel.Name)
}

func TestFindings(t *testing.T) {
	tests := map[string]struct {
		source string
		test   bool
		want   int
	}{
		"nothing":                      {"func a() {}", true, 0},
		"work left for later":          {"// TO" + "DO: write it\nfunc a() {}", false, 1},
		"a word that resembles it":     {"// A todo list, and a TODOLIST.\nfunc a() {}", false, 0},
		"the mark in a string":         {`var a = "TODO"`, false, 0},
		"a skipped test":               {"func TestA(t *testing.T) { t.Skip() }", true, 1},
		"a skipped part of a test":     {`func TestA(t *testing.T) { if true { t.Skipf("no") } }`, true, 1},
		"an input that a fuzzer skips": {"func FuzzA(f *testing.F) { f.Fuzz(func(t *testing.T) { t.Skip() }) }", true, 0},
		"an input that its helper skips": {
			"func FuzzA(f *testing.F) {}\nfunc draw(t *testing.T) { t.Skip() }", true, 0,
		},
		"a skipped test next to a fuzzer": {
			"func FuzzA(f *testing.F) {}\nfunc TestA(t *testing.T) { t.Skip() }", true, 1,
		},
		"a helper that skips for tests": {"func need(t *testing.T) { t.Skip() }", true, 1},
		"skipping in the code itself":   {"func a(t T) { t.Skip() }", false, 0},
		"sleep in a test":               {"func TestA(t *testing.T) { time.Sleep(1) }", true, 1},
		"sleep in the code":             {"func a() { time.Sleep(1) }", false, 1},
		"sleep in a bubble":             {"import \"testing/synctest\"\nfunc a() { time.Sleep(1) }", true, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n"+test.source, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if found := findings(file, test.test, imports(file, synctest)); len(found) != test.want {
				t.Errorf("got %v", found)
			}
		})
	}
}
