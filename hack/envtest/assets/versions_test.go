package assets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRequiredVersion(t *testing.T) {
	tests := map[string]struct{ goMod, want string }{
		"in a block":       {"require (\n\tk8s.io/kubernetes v1.37.0 // indirect\n)", "v1.37.0"},
		"on a single line": {"require k8s.io/kubernetes v1.38.1", "v1.38.1"},
		"a tool":           {"tool k8s.io/kubernetes/cmd/kube-apiserver", ""},
		"a replacement":    {"replace k8s.io/kubernetes => ../kubernetes v1.0.0", ""},
		"another module that has the name as a prefix": {"require k8s.io/kubernetes/extra v1.2.3", ""},
		"no requirement": {"module example.com", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := requiredVersion(test.goMod, kubernetesModule); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestRepositoryPinsTheReleases(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range []Release{Newest, Oldest} {
		pinned, err := readVersions(filepath.Join(release.module(root), "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(pinned.dir(), "v1.") || !strings.Contains(pinned.dir(), "-etcd-v3.") {
			t.Errorf("unexpected cache directory %q", pinned.dir())
		}
	}
}

func TestReadVersionsFailsWithoutTheReleases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "go.mod")
	if err := os.WriteFile(path, []byte("module example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readVersions(path); err == nil || !strings.Contains(err.Error(), kubernetesModule) {
		t.Errorf("the error must name the missing module: %v", err)
	}
}
