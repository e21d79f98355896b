package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/hack/source"
)

// checkout is a module with one package below pkg, and the package active.
func checkout(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile("active/active.go")
	if err != nil {
		t.Fatal(err)
	}
	files["go.mod"], files["hack/mutate/active/active.go"] = "module example.com/m\n\ngo 1.26\n", string(text)
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

// generated returns the file of a package with the source, and its mutants.
func generated(t *testing.T, text string) *sourceFile {
	t.Helper()
	tree, err := source.Load(t.Context(), checkout(t, map[string]string{"pkg/a/a.go": text}), "./pkg/...")
	if err != nil {
		t.Fatal(err)
	}
	files, err := findMutants(tree, func(file string) bool { return file == "pkg/a/a.go" })
	if err != nil || len(files) != 1 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	return files[0]
}

func TestMutants(t *testing.T) {
	tests := map[string]struct {
		source string // of a function with the parameters a, b bool; n int; err error; p *struct{ f int }
		want   []string
	}{
		"a condition is true, false, and the opposite": {
			"if a { n++; return }", []string{"a → true", "a → false", "a → !a", "n++ → removed"},
		},
		"a negation is removed": {
			"for !a { continue }", []string{"!a → true", "!a → false", "!a → a"},
		},
		"the sides of && are true, and the whole is false": {
			"if a && n == 1 { return }", []string{"a && n == 1 → true", "a && n == 1 → false", "a → true", "a → !a", "n == 1 → true", "n == 1 → n != 1"},
		},
		"the sides of || are false, and the whole is true, in parentheses, too": {
			"if !(a || b) { return }", []string{
				"!(a || b) → true", "!(a || b) → false", "!(a || b) → (a || b)", "a → false", "a → !a", "b → false", "b → !b",
			},
		},
		"a comparison includes equality, or does not": {
			"b = n < 2 || n >= 3", []string{
				"b = n < 2 || n >= 3 → removed", "n < 2 || n >= 3 → true", "n < 2 || n >= 3 → false",
				"n < 2 → false", "n < 2 → n >= 2", "n < 2 → n <= 2", "n >= 3 → false", "n >= 3 → n < 3", "n >= 3 → n > 3",
			},
		},
		"statements that set or call something are removed": {
			"p.f = 1; p.f += n; delete(map[int]int{}, n); defer clear([]int{}); c := n; _ = c", []string{
				"p.f = 1 → removed", "p.f += n → removed", "delete(map[int]int{}, n) → removed", "defer clear([]int{}) → removed",
			},
		},
		"a guard clause with a statement is removed as a whole, too": {
			"if n := len(f()); n > 1 { return }", []string{"if n := len(f()); n > 1 {…} → removed", "n > 1 → true", "n > 1 → false", "n > 1 → n <= 1", "n > 1 → n >= 1"},
		},
		"cases are removed": {
			"switch n { case 1, 2: return; default: p.f++ }", []string{"case 1, 2 → removed", "p.f++ → removed"},
		},
		"cases without a value are conditions": {
			"switch { case a: return }", []string{"a → true", "a → false", "a → !a"},
		},
		"returned errors and truth values are turned": {
			"_ = func() (bool, error) { if a { return true, err }; return b, nil }", []string{
				"a → true", "a → false", "a → !a", "return err → nil", "true → false", "return nil → an error", "b → true", "b → false", "b → !b",
			},
		},
		"a log line, a panic, and a definition are kept": {
			"Logger{}.Info(); if true { panic(n) }", nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := generated(t, "package a\n\ntype Logger struct{}\n\nfunc (Logger) Info() {}\n\nfunc f() string { return \"\" }\n\nfunc g(a, b bool, n int, err error, p *struct{ f int }) {\n\t"+test.source+"\n}\n")
			var changes []string
			for _, m := range f.mutants {
				changes = append(changes, m.id.change)
			}
			if !slices.Equal(changes, test.want) {
				t.Errorf("got  %q\nwant %q\n%s", changes, test.want, f.instrumented())
			}
		})
	}
}

func TestMutantsAreNamedByTheirFunctionAndLine(t *testing.T) {
	f := generated(t, "package a\n\ntype T struct{ f int }\n\nfunc (t *T) set(a bool) {\n\tif a {\n\t\tt.f = 1 // once\n\t}\n\tt.f = 2; t.f = 2\n}\n")
	first, last := f.mutants[len(f.mutants)-3], f.mutants[len(f.mutants)-1]
	want := identity{file: "pkg/a/a.go", function: "T.set", source: "t.f = 1 // once", change: "t.f = 1 → removed", ordinal: 1}
	if first.id != want || first.String() != "pkg/a/a.go:7:3: T.set: t.f = 1 → removed" {
		t.Errorf("got %s, %+v", first, first.id)
	}
	if last.id.ordinal != 2 || last.number != len(f.mutants) {
		t.Errorf("got %+v", last)
	}
}

func TestInstrumentedSourceKeepsItsLines(t *testing.T) {
	f := generated(t, "package a\n\nfunc g(n int) bool {\n\tswitch n {\n\tcase 1,\n\t\t2:\n\t\treturn n > 0 &&\n\t\t\tn < 9\n\t}\n\treturn false\n}\n")
	text := f.instrumented()
	if got, want := strings.Count(text, "\n"), strings.Count(f.text, "\n"); got != want {
		t.Errorf("got %d lines instead of %d:\n%s", got, want, text)
	}
}
