package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Results with another server, another latency, or other definitions are not taken from the cache of
// the go command.
func TestResultsBelongToTheirInputs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "inputs") // where go test finds what a test has looked at
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNamespaceIsNamedAfterTheTestAndUnique$", "-test.testlogfile="+file)
	command.Env = append(os.Environ(), Server+"="+InMemory)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	inputs, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"getenv " + Server, "getenv " + Latency, "getenv " + Existing, "getenv KUBEBUILDER_ASSETS", "kopfexamples.yaml", "kopfclusters.yaml"} {
		if !strings.Contains(string(inputs), want+"\n") {
			t.Errorf("there is no %q in\n%s", want, inputs)
		}
	}
}
