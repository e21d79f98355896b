package binaries

import (
	"bytes"
	"io"
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

// update copies the pins, after an update of the module that they come from.
const update = "KOPF_UPDATE_GOLDEN"

// repository is the root of it.
const repository = "../.."

// The embedded pins are copies of a module that updates know.
func TestTheEmbeddedPinsAreThoseOfTheRepository(t *testing.T) {
	pins, err := ReadPins(filepath.FromSlash(repository + "/hack/tools/envtest"))
	if err != nil {
		t.Fatal(err)
	}
	copies := map[string]struct{ want, got []byte }{
		"newest/pins.mod": {pins.GoMod, newestMod}, "newest/pins.sum": {pins.GoSum, newestSum},
	}
	for name, content := range copies {
		if bytes.Equal(content.got, content.want) {
			continue
		}
		if os.Getenv(update) == "" {
			t.Errorf("%s differs from hack/tools/envtest: run %s=1 go test ./internal/binaries", name, update)
		} else if err := os.WriteFile(filepath.FromSlash(name), content.want, 0o644); err != nil { //nolint:gosec // a source
			t.Error(err)
		}
	}
}

func TestTheRepositoryPinsItsReleases(t *testing.T) {
	oldest, err := ReadPins(filepath.FromSlash(repository + "/hack/tools/envtest/oldest"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pins := range []Pins{Newest(), oldest} {
		pinned, err := pins.versions()
		if err != nil || !strings.HasPrefix(pinned.dir(), "v1.") || !strings.Contains(pinned.dir(), "-etcd-v3.") {
			t.Errorf("unexpected cache directory %q, %v", pinned.dir(), err)
		}
	}
}

func TestPinsWithoutTheReleasesAreAnError(t *testing.T) {
	pins := Pins{GoMod: []byte("module example.com\n")}
	if _, err := Build(t.Context(), pins, io.Discard); err == nil || !strings.Contains(err.Error(), kubernetesModule) {
		t.Errorf("the error must name the missing module: %v", err)
	}
}
