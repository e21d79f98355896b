package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/hack/envtest/assets"
)

// HasAddress reports whether other processes can connect to the API server.
func (c *Cluster) HasAddress() bool { return len(c.kubeconfig) > 0 }

// Kubectl returns a function that runs kubectl in a namespace as an administrator, as a person
// does, and returns what it prints. An error has that, too.
func (c *Cluster) Kubectl(t testing.TB, namespace string) func(arguments ...string) (string, error) {
	t.Helper()
	program, err := assets.FindKubectl()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir() // it keeps what it has discovered
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(kubeconfig, c.KubeConfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(arguments ...string) (string, error) {
		command := exec.CommandContext(t.Context(), program, append([]string{"--kubeconfig=" + kubeconfig, "--namespace=" + namespace}, arguments...)...) //nolint:gosec // no input from outside
		command.Env = append(os.Environ(), "HOME="+home)
		printed, err := command.CombinedOutput()
		text := strings.TrimSpace(string(printed))
		if err != nil {
			return text, fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, text)
		}
		return text, nil
	}
}
