package kopf_test

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// complaint matches an error of the compiler.
var complaint = regexp.MustCompile(`options\.go:(\d+):\d+: (.*)`)

// An option that makes no sense for a kind of handler does not compile.
func TestOptionsThatDoNotFitDoNotCompile(t *testing.T) {
	source, err := os.ReadFile("testdata/options/options.go")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	build := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "./testdata/options")
	build.Stderr = &out
	if err := build.Run(); err == nil {
		t.Error("everything compiles")
	}
	complaints := map[int]string{}
	for _, found := range complaint.FindAllStringSubmatch(out.String(), -1) {
		number, _ := strconv.Atoi(found[1])
		complaints[number] = found[2]
	}
	if len(complaints) == 0 {
		t.Fatalf("the compiler says %s", out.String())
	}
	for i, line := range strings.Split(string(source), "\n") {
		refused, want := complaints[i+1] != "", strings.HasSuffix(line, "// refused")
		if refused != want {
			t.Errorf("line %d: %s\nthe compiler says %q", i+1, strings.TrimSpace(line), complaints[i+1])
		}
	}
}
