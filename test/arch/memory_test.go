package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The list of tests that need the real API server names tests, with reasons.
func TestListOfTestsForTheRealServer(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(root(t), "test", "memory.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 3 {
			t.Errorf("%q: want a suite, a test, and the reason", line)
			continue
		}
		name, _, _ := strings.Cut(fields[1], "/")
		if sources := testsOf(t, fields[0]); name != "-" && !regexp.MustCompile(`(?m)^func `+name+`\(`).MatchString(sources) {
			t.Errorf("the suite %s has no test %s", fields[0], name)
		}
	}
}

// testsOf returns the sources of the tests of a suite.
func testsOf(t *testing.T, suite string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), "test", "integration", suite, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("there is no suite %s: %v", suite, err)
	}
	var all strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}
