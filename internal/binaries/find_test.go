package binaries

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fill makes a directory with programs.
func fill(t *testing.T, dir string, programs ...string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, name := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	return dir
}

func TestFind(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
	t.Setenv(Variable, "")
	if _, err := Find("1.37"); !errors.Is(err, ErrMissing) {
		t.Errorf("got %v", err)
	}
	cache := filepath.Join(home, "cache", "kopf-go", "envtest")
	fill(t, filepath.Join(cache, "v1.40.0-etcd-v3.9.0"), "etcd") // its build was interrupted
	fill(t, filepath.Join(cache, "notes"), "etcd", "kube-apiserver")
	steps := []struct{ dir, want string }{
		{filepath.Join(cache, "v1.9.0-etcd-v3.5.0"), "v1.9.0-etcd-v3.5.0"},
		{filepath.Join(home, "data", "kubebuilder-envtest", "k8s", "1.38.2-linux-amd64"), "1.38.2-linux-amd64"}, // newer, not in the order of the alphabet
		{filepath.Join(cache, "v1.37.0-etcd-v3.7.3"), "v1.37.0-etcd-v3.7.3"},                                    // wanted
		{filepath.Join(cache, "v1.37.2-etcd-v3.7.3"), "v1.37.2-etcd-v3.7.3"},
	}
	for _, step := range steps {
		fill(t, step.dir, "etcd", "kube-apiserver")
		if got, err := Find("1.37"); err != nil || filepath.Base(got) != step.want {
			t.Errorf("got %s, %v, want %s", got, err, step.want)
		}
	}
	named := fill(t, filepath.Join(home, "named"), "kube-apiserver")
	t.Setenv(Variable, named)
	if _, err := Find("1.37"); err == nil || !strings.Contains(err.Error(), "program etcd") {
		t.Errorf("an incomplete directory is accepted: %v", err)
	}
	fill(t, named, "etcd")
	if got, err := Find("1.37"); got != named {
		t.Errorf("got %s, %v", got, err)
	}
}
