// Package deployment runs the example manager as Kubernetes would: from the manifests in
// config/, with only the token of its service account. The audit log of the API server shows
// its requests and rejections.
//
// There is no kubelet: the tests start the processes of the pods with their arguments and
// environment, and with loopback addresses for their ports. There is no service network
// either: the API server resolves the service of the webhooks to this machine.
package deployment

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kopf-go/kopf/hack/envtest/assets"
)

// root is the root of the repository.
func root(t *testing.T) string {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// manifests returns the objects of a kustomization.
func manifests(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "tool", "-modfile=hack/tools/go.mod", "kustomize", "build", dir)
	command.Dir = root(t)
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("building %s: %v\n%s", dir, err, &problems)
	}
	return objects(t, output)
}

func objects(t *testing.T, text []byte) (all []*unstructured.Unstructured) {
	t.Helper()
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		case len(object.Object) > 0:
			all = append(all, object)
		}
	}
}

// of returns the objects of a kind with their Go type.
func of[T any](t *testing.T, kind string, all []*unstructured.Unstructured) (found []*T) {
	t.Helper()
	for _, object := range all {
		if object.GetKind() != kind {
			continue
		}
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
			t.Fatalf("%s %s: %v", kind, object.GetName(), err)
		}
		found = append(found, typed)
	}
	return found
}

// complete returns the directory of a copy of config/default with the components that need no
// other operators.
func complete(t *testing.T) (dir string) {
	t.Helper()
	return withComponents(t, "metrics", "webhook", "page", "network-policy")
}

// withComponents returns the directory of a copy of config/default with components, which are
// commented out there.
func withComponents(t *testing.T, components ...string) (dir string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config")
	if err := os.CopyFS(config, os.DirFS(filepath.Join(root(t), "config"))); err != nil {
		t.Fatal(err)
	}
	text := read(t, "config/default/kustomization.yaml")
	with := strings.Replace(text, "\n# components:", "\ncomponents:", 1)
	for _, component := range components {
		before := with
		if with = strings.Replace(with, "\n#   - ../"+component+"\n", "\n  - ../"+component+"\n", 1); with == before {
			t.Fatalf("config/default no longer shows how to add config/%s", component)
		}
	}
	dir = filepath.Join(config, "default")
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(with), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
