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

// TestProjectsInOtherLanguagesWork does the same with those whose handlers are in Python, JavaScript, and shell.
func TestProjectsInOtherLanguagesWork(t *testing.T) {
	program := filepath.Join(t.TempDir(), "kopf")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../../cmd/kopf")
	if printed, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	for _, language := range scaffold.Languages {
		t.Run(language, func(t *testing.T) {
			if needed := map[string]string{"python": "python3", "node": "node", "shell": "sh"}[language]; !installed(needed) {
				t.Logf("NOT TESTED: there is no %s in the PATH, so no project in %s is tried", needed, language)
				return
			}
			dir, _ := write(t, greeter(func(project *scaffold.Project) { project.Language = language }))
			run(t, dir, "make", "test", "KOPF="+program)
			text := run(t, dir, "make", "--silent", "manifests", "KOPF="+program)
			for _, want := range []string{"name: greetings.example.com\n", "  name: greeter-system\n", "resources: [greetings]"} {
				if !strings.Contains(string(text), want) {
					t.Errorf("the manifests lack %q:\n%s", want, text)
				}
			}
		})
	}
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// The adapter is that of the examples: go generate copies it.
func TestTheAdapterIsCurrent(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "languages", "python", "kopf.py"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join("templates", "language", "python", "kopf.py")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("it is another one: run make manifests (%v)", err)
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
