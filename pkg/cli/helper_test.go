package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

// result is the result of a command.
type result struct {
	code     int
	out, log string
}

// run executes a command with arguments.
func run(t *testing.T, command *cobra.Command, arguments ...string) result {
	t.Helper()
	t.Cleanup(func() { // resets the loggers of the libraries
		klog.ClearLogger()
		var verbosity klog.Level
		_ = verbosity.Set("0")
	})
	var out, log bytes.Buffer
	command.SetArgs(arguments)
	code := execute(t.Context(), command, &out, &log)
	return result{code, out.String(), log.String()}
}

// runOperator runs the command of an operator that only records its invocation.
func runOperator(t *testing.T, arguments ...string) (Invocation, result) {
	t.Helper()
	var invocation Invocation
	command := newOperatorCommand("operator", func(_ context.Context, in Invocation) error {
		invocation = in
		return nil
	})
	r := run(t, command, arguments...)
	return invocation, r
}

// writeKubeconfig writes a kubeconfig with two contexts. The current one is "this".
func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := `
apiVersion: v1
kind: Config
current-context: this
clusters:
- {name: here, cluster: {server: "` + server + `"}}
- {name: there, cluster: {server: "https://there.example.com"}}
users:
- {name: me, user: {token: t0k3n}}
contexts:
- {name: this, context: {cluster: here, user: me}}
- {name: that, context: {cluster: there, user: me}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hideCluster hides any cluster that the machine is configured for.
func hideCluster(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
}
