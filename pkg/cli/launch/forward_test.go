package launch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/cli/launch"
)

// installKubectl puts a script in the place of kubectl.
func installKubectl(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
}

func TestAPortIsForwardedByKubectl(t *testing.T) {
	said := filepath.Join(t.TempDir(), "arguments")
	installKubectl(t, `echo "$@" > `+said+`; echo "Forwarding from 127.0.0.1:4321 -> 8443"; exec sleep 600`)
	address, stop, err := launch.Forward(t.Context(), "operators", "one", "8443", []string{"--context=mine"})
	if err != nil || address != "127.0.0.1:4321" {
		t.Fatalf("got %q, %v", address, err)
	}
	stop()
	text, err := os.ReadFile(said)
	if want := "port-forward --namespace=operators --address=127.0.0.1 --context=mine pod/one :8443\n"; err != nil || string(text) != want {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestAFailedForwardingSaysWhy(t *testing.T) {
	installKubectl(t, `echo "error: pods \"one\" is forbidden" >&2; exit 1`)
	_, _, err := launch.Forward(t.Context(), "operators", "one", "8443", nil)
	if err == nil || err.Error() != `kubectl cannot forward a port to the pod one: error: pods "one" is forbidden` {
		t.Errorf("got %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, _, err := launch.Forward(t.Context(), "operators", "one", "8443", nil); err == nil || !strings.Contains(err.Error(), "cannot be run") {
		t.Errorf("got %v", err)
	}
}
