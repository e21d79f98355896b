package kubebuilder

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shell runs programs in a folder.
type shell struct {
	t           *testing.T
	dir         string
	environment []string
}

// run returns the standard output. The go command reports on standard error what it downloads.
func (s *shell) run(program string, arguments ...string) string {
	s.t.Helper()
	var output, problems bytes.Buffer
	command := exec.CommandContext(s.t.Context(), program, arguments...)
	command.Dir, command.Env, command.Stdout, command.Stderr = s.dir, s.environment, &output, &problems
	if err := command.Run(); err != nil {
		s.t.Fatalf("%s %q: %v\n%s%s", program, arguments, err, output.String(), problems.String())
	}
	return output.String()
}

func (s *shell) read(path string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, path))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// A project that kubebuilder makes with the plugin is vetted, its tests pass, and its roles are those of its markers.
func TestProjectsWork(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	library := &shell{t, root, os.Environ()}
	library.run("go", "build", "-o", filepath.Join(programs, "kopf"), "./cmd/kopf")
	here := &shell{t, ".", os.Environ()}
	kubebuilder := strings.TrimSpace(here.run("go", "tool", "-n", "kubebuilder"))

	// The makefile downloads control planes for tests of reconcilers. The tests of handlers need none, so the version "none" of
	// what downloads them is there, and does nothing.
	setup := filepath.Join(programs, "setup-envtest")
	if err := os.WriteFile(setup+"-none", []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(setup+"-none", setup); err != nil {
		t.Fatal(err)
	}
	project := &shell{t, filepath.Join(t.TempDir(), "shop"), append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir(), "MAKEFLAGS=", "GOFLAGS=")}
	if err := os.Mkdir(project.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	project.run(filepath.Join(programs, "kopf"), "kubebuilder")
	project.run(kubebuilder, "init", "--plugins", "go/v4,kopf/v1", "--domain", "example.com", "--repo", "example.com/shop", "--kopf-replace", root)
	project.run("go", "vet", "./...")
	for _, kind := range []string{"Order", "Customer"} {
		project.run(kubebuilder, "create", "api", "--group", "shop", "--version", "v1", "--kind", kind, "--resource", "--controller=false")
	}
	project.run("make", "test", "ENVTEST="+setup, "ENVTEST_VERSION=none")
	registry := project.read("internal/handlers/handlers.go")
	for _, line := range []string{"\taddOrder(registry)\n", "\taddCustomer(registry)\n"} {
		if strings.Count(registry, line) != 1 {
			t.Errorf("the registry has %q %d times:\n%s", line, strings.Count(registry, line), registry)
		}
	}
	role := project.read("config/rbac/role.yaml")
	for _, word := range []string{"orders", "customers", "orders/status", "customers/status", "events", "customresourcedefinitions"} {
		if !slices.Contains(strings.Fields(role), word) {
			t.Errorf("the role has no rule for %s:\n%s", word, role)
		}
	}
	if tests := project.run("go", "test", "-v", "./internal/handlers"); !strings.Contains(tests, "--- PASS: TestOrder ") || !strings.Contains(tests, "--- PASS: TestCustomer ") {
		t.Errorf("got %s", tests)
	}

	// Another version of a kind changes nothing.
	before := project.read("internal/handlers/order_handlers.go")
	project.run(kubebuilder, "create", "api", "--group", "shop", "--version", "v2", "--kind", "Order", "--resource", "--controller=false")
	if project.read("internal/handlers/order_handlers.go") != before || project.read("internal/handlers/handlers.go") != registry {
		t.Error("the handlers have changed with another version")
	}
}
