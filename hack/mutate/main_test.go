package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/hack/source"
)

// TestRun tries all mutants of a small package. The build takes seconds.
func TestRun(t *testing.T) {
	dir := checkout(t, map[string]string{
		"pkg/a/a.go": `package a

func IsSmall(n int, isAbsent bool) bool {
	return !isAbsent && n < 10
}

func Count(n int) (i int) {
	for i < n {
		i++
	}
	return i
}

func Untested(n int) error {
	if n > 1 {
		return nil
	}
	return nil
}
`,
		"pkg/a/a_test.go": `package a

import "testing"

func TestSlow(t *testing.T) {
	for range 2_500_000_000 {
	}
	TestCount(t)
}

func TestIsSmall(t *testing.T) {
	if !IsSmall(9, false) || IsSmall(11, false) || IsSmall(9, true) {
		t.Fail()
	}
}

func TestCount(t *testing.T) {
	if Count(3) != 3 {
		t.Fail()
	}
}
`,
	})
	o := options{parallel: 2, timeout: 6 * time.Second, files: []string{"pkg/a"}, results: filepath.Join(dir, "results.json")}
	var out bytes.Buffer
	err := run(t.Context(), &out, dir, o)
	if err == nil || err.Error() != "7 mutants survive, or are not equivalent" {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{
		"pkg/a: the unit tests of pkg/a try 18 mutants\n",
		"SURVIVES pkg/a/a.go:4:22: IsSmall: n < 10 → n <= 10\n\treturn !isAbsent && n < 10\n\tall tests that run this code pass; to repeat: go run ./hack/mutate -at pkg/a/a.go:4:22\n",
		"SURVIVES pkg/a/a.go:15:5: Untested: n > 1 → n >= 1\n\tif n > 1 {\n\tno test runs this code;",
		"pkg/a/a.go  18       11    0       0      0    0        0      0      0           7  (2 killed by a timeout)\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := run(t.Context(), &out, dir, o); err == nil || strings.Contains(out.String(), "try") {
		t.Errorf("the second run uses the results of the first one, instead of: %v\n%s", err, out.String())
	}
	o.at = "pkg/a/a.go:9:3"
	out.Reset()
	if err := run(t.Context(), &out, dir, o); err != nil || strings.Contains(out.String(), "TestSlow") {
		t.Errorf("a quick test finds it, instead of: %v\n%s", err, out.String())
	}
	o.at = "pkg/a/a.go:4:9"
	out.Reset()
	if err := run(t.Context(), &out, dir, o); err != nil || !strings.Contains(out.String(), "--- FAIL: TestIsSmall") {
		t.Errorf("got %v\n%s", err, out.String())
	}
}

// TestEquivalentMutantsExist fails when the source of an equivalent mutant has changed: check
// whether it still makes no difference, and change or remove its entry.
func TestEquivalentMutantsExist(t *testing.T) {
	reasons, err := parseEquivalents(equivalentText)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	for id, reason := range reasons {
		files[id.file] = true
		if !strings.HasSuffix(reason, ".") {
			t.Errorf("the reason is not a sentence: %s", reason)
		}
	}
	tree, err := source.Load(t.Context(), filepath.Join("..", ".."), "./pkg/...")
	if err != nil {
		t.Fatal(err)
	}
	found, err := findMutants(tree, func(file string) bool { return files[file] })
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range outdated(reasons, mutantsOf(found)) {
		t.Errorf("no mutant matches:\n%s", entry)
	}
}

func TestEquivalentMutantsHaveFourLines(t *testing.T) {
	reasons, err := parseEquivalents("# a comment\n\npkg/a/a.go f 2\n\tif a {\n\ta → true\n\tIt is.\n")
	want := identity{file: "pkg/a/a.go", function: "f", source: "if a {", change: "a → true", ordinal: 2}
	if err != nil || reasons[want] != "It is." {
		t.Errorf("got %v, %v", reasons, err)
	}
	if got := want.entry(); got != "pkg/a/a.go f 2\n\tif a {\n\ta → true\n" {
		t.Errorf("got %q", got)
	}
	for _, broken := range []string{"pkg/a/a.go f\nif a {\na → true", "pkg/a/a.go\n1\n2\n3", "pkg/a/a.go f x\n1\n2\n3"} {
		if _, err := parseEquivalents(broken); err == nil {
			t.Errorf("%q is accepted", broken)
		}
	}
}

func TestResultNamesTheTest(t *testing.T) {
	tests := map[string]struct {
		output string
		want   result
	}{
		"a failure":       {"x\n--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b\n", result{Reached: true, Killer: "TestA"}},
		"a timeout":       {"panic: test timed out after 1s\n\trunning tests:\n\t\tTestB (1s)\n", result{Reached: true, Killer: "TestB", TimedOut: true}},
		"a crash in one":  {"fatal error: stack overflow\n\ngoroutine 1:\nexample.com/m.TestC(0x1)\n", result{Reached: true, Killer: "TestC"}},
		"an unknown test": {"signal: killed", result{Reached: true, Killer: "a crash"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := resultOf(test.output); got != test.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}
