package scaffold_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/cli/scaffold"
)

// TestProjectsWork does with new projects what their Makefile does. The library is that of this repository, and so are the
// versions of all modules.
func TestProjectsWork(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*scaffold.Project){"untyped": untyped, "typed": typed} {
		t.Run(name, func(t *testing.T) {
			project := greeter(change)
			project.Replace = root
			dir, _ := write(t, project)
			sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600); err != nil {
				t.Fatal(err)
			}
			run(t, dir, "make", "test")
			if project.Typed {
				regenerate(t, root, dir)
			}
			checkManifests(t, run(t, dir, "make", "--silent", "manifests"))
		})
	}
}

// run runs a command in a project, and returns what it prints.
func run(t *testing.T, dir, program string, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "MAKEFLAGS=")
	var printed, problems bytes.Buffer
	command.Stdout, command.Stderr = &printed, &problems
	if err := command.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(arguments, " "), err, &printed, &problems)
	}
	return printed.Bytes()
}

// regenerate compares the definition and the copying of the types with what controller-gen makes of the types.
func regenerate(t *testing.T, root, dir string) {
	t.Helper()
	generator := filepath.Join(t.TempDir(), "controller-gen")
	build := exec.CommandContext(t.Context(), "go", "build", "-modfile=hack/tools/controller-gen/go.mod", "-o", generator, "sigs.k8s.io/controller-tools/cmd/controller-gen")
	build.Dir = root
	if printed, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	for path, arguments := range map[string][]string{
		"config/crd/greetings.yaml":       {"crd", "paths=./api/...", "output:stdout"},
		"api/v1/zz_generated.deepcopy.go": {"object", "paths=./api/...", "output:stdout"},
	} {
		want := run(t, dir, generator, arguments...)
		if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what controller-gen makes: %v\n%s", path, err, want)
		}
	}
}

// checkManifests checks that the manifests have what the handlers need.
func checkManifests(t *testing.T, text []byte) {
	t.Helper()
	objects, err := manifests.Objects(text)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, object := range objects {
		found[object.GetKind()+" "+object.GetName()] = object.GetNamespace()
	}
	for _, want := range []string{"CustomResourceDefinition greetings.example.com", "Deployment greeter", "ServiceAccount greeter", "Namespace greeter-system"} {
		if _, exists := found[want]; !exists {
			t.Errorf("there is no %s in %v", want, found)
		}
	}
	if !strings.Contains(string(text), "configmaps") {
		t.Errorf("the roles have no rule for config maps:\n%s", text)
	}
}
