package faults

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Building the storms takes longer than most storms take to notice that a guard is missing. So
// there is one program for all guards: every function with a guard is there a second time,
// without it, and an environment variable decides which one is called.

// missingGuard is the environment variable with the number of the guard that is missing.
const missingGuard = "KOPF_MISSING_GUARD"

// reached is what the program prints when it first calls a function without its guard.
const reached = "called without the guard"

// missingGuardSource is a file that every package with guards has in addition.
const missingGuardSource = `package %s

import (
	"os"
	"sync"
)

var missingGuard = os.Getenv(%q)

var reachWithoutGuard = sync.OnceFunc(func() { println(%q) })
`

// stormBinary builds the storms with all guards, and returns the program and the numbers of the guards that it can
// be run without. The others are not in functions.
func stormBinary(t *testing.T, all map[string]guard) (binary string, numbers map[string]int) {
	files, numbers := withCopies(t, all)
	for path, text := range files {
		addition := filepath.Join(filepath.Dir(path), "zz_missing_guard.go")
		files[addition] = fmt.Sprintf(missingGuardSource, packageOf(text), missingGuard, reached)
	}
	return build(t, overlayOf(t, t.TempDir(), files)), numbers
}

// withCopies returns the files with guards, in which each function with a guard is there a second
// time, and the numbers of these guards.
func withCopies(t *testing.T, all map[string]guard) (files map[string]string, numbers map[string]int) {
	files, numbers = map[string]string{}, map[string]int{}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		g := all[name]
		path := g.path(t)
		if files[path] == "" {
			files[path] = g.source(t)
		}
		if text, ok := withCopy(t, files[path], g, i+1); ok {
			files[path], numbers[name] = text, i+1
		}
	}
	return files, numbers
}

// TestCopiesHaveNoGuard checks that the right code is missing, also where a function has several
// guards.
func TestCopiesHaveNoGuard(t *testing.T) {
	all := allGuards()
	files, numbers := withCopies(t, all)
	for name, number := range numbers {
		g := all[name]
		text, suffix := files[g.path(t)], fmt.Sprintf("WithoutGuard%d", number)
		found := false
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, g.file, text, 0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasSuffix(f.Name.Name, suffix) {
				body := text[set.Position(f.Pos()).Offset:set.Position(f.End()).Offset]
				found = strings.Contains(body, g.instead) && strings.Count(body, g.code) == strings.Count(g.instead, g.code)
			}
		}
		if calls := strings.Count(text, suffix+"("); !found || calls < 2 { // the copies for other guards call it, too
			t.Errorf("%s: its function has no copy without it, or is not called: %d", name, calls)
		}
	}
}

// build builds the tests of this package with a build overlay.
func build(t *testing.T, overlay string) (binary string) {
	binary = filepath.Join(t.TempDir(), "storm.test")
	compile := exec.Command("go", "test", "-c", "-overlay", overlay, "-vet=off", "-ldflags=-w", "-o", binary, "./test/faults")
	compile.Dir = root(t)
	if output, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("the code does not build:\n%s", output)
	}
	return binary
}

// overlayOf writes a build overlay with the content of files.
func overlayOf(t *testing.T, dir string, files map[string]string) string {
	replace := map[string]string{}
	for i, path := range slices.Sorted(maps.Keys(files)) {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replace[path], []byte(files[path]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	overlay := filepath.Join(dir, "overlay.json")
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return overlay
}

func packageOf(source string) string {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.PackageClauseOnly)
	if err != nil {
		return ""
	}
	return file.Name.Name
}

// withCopy adds a copy of the function that contains a guard, without the guard, and calls it
// if the guard is missing. It returns false if the guard is not in a function.
func withCopy(t *testing.T, source string, g guard, number int) (string, bool) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, g.file, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(source, g.code)
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || at < offset(f.Body.Lbrace) || at > offset(f.End()) {
			continue
		}
		name := fmt.Sprintf("%sWithoutGuard%d", f.Name.Name, number)
		call, ok := callOf(f, name)
		if !ok {
			return "", false
		}
		begin, named, end := offset(f.Pos()), offset(f.Name.Pos()), offset(f.End())
		body := offset(f.Body.Lbrace) + 1
		rest := source[named+len(f.Name.Name) : end]
		duplicate := source[begin:named] + name + strings.Replace(rest, g.code, g.instead, 1)
		choice := fmt.Sprintf("if missingGuard == \"%d\" { reachWithoutGuard(); %s }\n", number, call)
		return source[:body] + choice + source[body:] + "\n" + duplicate + "\n", true
	}
	return "", false
}

// callOf returns a statement that calls the copy of a function with its own arguments.
func callOf(f *ast.FuncDecl, name string) (string, bool) {
	var args []string
	for _, field := range f.Type.Params.List {
		_, variadic := field.Type.(*ast.Ellipsis)
		for _, arg := range field.Names {
			args = append(args, arg.Name+map[bool]string{true: "..."}[variadic])
		}
		if len(field.Names) == 0 {
			return "", false
		}
	}
	if slices.Contains(args, "_") || f.Recv != nil && len(f.Recv.List[0].Names) == 0 {
		return "", false
	}
	if f.Recv != nil {
		name = f.Recv.List[0].Names[0].Name + "." + name
	}
	call := name + "(" + strings.Join(args, ", ") + ")"
	if f.Type.Results == nil {
		return call + "; return", true
	}
	return "return " + call, true
}
