package arch

import (
	"os/exec"
	"strings"
	"testing"
)

// TestOperatorsDoNotContainTheKit holds what the test kit needs out of every operator: its
// API server, and the libraries that check custom resources.
func TestOperatorsDoNotContainTheKit(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"pkg/kopf").Output()
	if err != nil {
		t.Fatal(err)
	}
	for imported := range strings.Lines(string(out)) {
		for _, unwanted := range []string{module + "pkg/kopftest", "k8s.io/apiserver", "k8s.io/apiextensions-apiserver/pkg/apiserver", "github.com/google/cel-go"} {
			if within(strings.TrimSpace(imported), unwanted) {
				t.Errorf("pkg/kopf depends on %s", imported)
			}
		}
	}
}
