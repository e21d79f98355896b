package deployment

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// version is the version of the image in the tests.
const version = "v1.2.3-test"

var (
	continued = regexp.MustCompile(`\\\n\s*`)
	mounts    = regexp.MustCompile(`--mount=\S+\s+`)
)

// instructions returns the arguments of a Dockerfile instruction.
func instructions(t *testing.T, word string) (found []string) {
	t.Helper()
	for line := range strings.Lines(continued.ReplaceAllString(read(t, "Dockerfile"), "")) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), word+" "); ok {
			found = append(found, rest)
		}
	}
	return found
}

// sources are the files that the image is built from.
func sources(t *testing.T) (found []string) {
	t.Helper()
	for _, copied := range instructions(t, "COPY") {
		if words := strings.Fields(copied); !strings.HasPrefix(copied, "--from") {
			found = append(found, words[:len(words)-1]...)
		}
	}
	return found
}

// image builds the program as the Dockerfile does, with its command lines and the files that
// it copies.
func image(t *testing.T) (program string) {
	t.Helper()
	dir, program := t.TempDir(), filepath.Join(t.TempDir(), "manager")
	for _, path := range sources(t) {
		duplicate(t, filepath.Join(root(t), path), filepath.Join(dir, path))
	}
	environment := append(os.Environ(), instructions(t, "ARG")...)
	environment = append(environment, "VERSION="+version, "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH)
	for _, line := range instructions(t, "RUN") {
		line = strings.ReplaceAll(mounts.ReplaceAllString(line, ""), "/out/manager", program)
		command := exec.CommandContext(t.Context(), "/bin/sh", "-euc", line)
		command.Dir, command.Env = dir, environment
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, output)
		}
	}
	return program
}

func duplicate(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		err = os.CopyFS(to, os.DirFS(from))
	} else {
		var content []byte
		if content, err = os.ReadFile(from); err == nil {
			err = os.WriteFile(to, content, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestImageGetsItsSources(t *testing.T) {
	lines := strings.Split(read(t, ".dockerignore"), "\n")
	if !slices.Contains(lines, "*") {
		t.Error(".dockerignore does not ignore all other files")
	}
	for _, path := range sources(t) {
		if !slices.Contains(lines, "!"+path) {
			t.Errorf(".dockerignore keeps %s from the image", path)
		}
	}
}

func TestImageDoesNotRunAsRoot(t *testing.T) {
	if users := instructions(t, "USER"); !slices.Equal(users, []string{"65532:65532"}) {
		t.Errorf("the users are %q: Kubernetes needs a number to verify that the user is not root", users)
	}
	bases := instructions(t, "FROM")
	if last := bases[len(bases)-1]; last != "gcr.io/distroless/static:nonroot" {
		t.Errorf("the image is based on %s", last)
	}
}
