package binaries

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakeGo replaces the go command: it appends its arguments to $CALLS and writes the
// file named after -o.
const fakeGo = `#!/bin/sh
echo "$@" >>"$CALLS"
while [ "$1" != -o ]; do shift; done
[ -f go.mod ] && [ -f go.sum ] || exit 1
echo "example.com/package" >&2
echo binary >"$2"
chmod +x "$2"
`

const brokenGo = `#!/bin/sh
echo "a.go:1:2: no such thing" >&2
exit 1
`

// sandbox gives a test a separate cache and a fake go command, and returns the file
// with the calls of that command.
func sandbox(t *testing.T, goCommand string) string {
	t.Helper()
	bin, home := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(goCommand), 0o700); err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(bin, "calls")
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("CALLS", calls)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv(Variable, "")
	return calls
}

func TestConcurrentRunsBuildOnce(t *testing.T) {
	calls := sandbox(t, fakeGo)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			dir, err := Build(t.Context(), Newest(), io.Discard)
			if err != nil || missingIn(dir) != "" {
				t.Errorf("Build: %q, %v", dir, err)
			}
		})
	}
	group.Wait()
	made, err := os.ReadFile(calls)
	if err != nil || bytes.Count(made, []byte("\n")) != 2 {
		t.Errorf("each binary must be built once, got %v:\n%s", err, made)
	}
	if !bytes.Contains(made, []byte("version.gitVersion=v1.")) {
		t.Errorf("kube-apiserver must know its release:\n%s", made)
	}
}

func TestOnlyMissingProgramsAreBuilt(t *testing.T) {
	calls := sandbox(t, fakeGo)
	dir, _ := Cached(Newest())
	fill(t, dir, Etcd)
	if _, err := Build(t.Context(), Newest(), io.Discard); err != nil {
		t.Fatal(err)
	}
	if made, _ := os.ReadFile(calls); bytes.Contains(made, []byte(etcdModule)) {
		t.Errorf("etcd existed already:\n%s", made)
	}
}

func TestFailedBuildReportsTheReasonAndLeavesNoFiles(t *testing.T) {
	sandbox(t, brokenGo)
	_, err := Build(t.Context(), Newest(), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("the error must contain the output of the go command: %v", err)
	}
	dir, _ := Cached(Newest())
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".build-*"))
	if missingIn(dir) == "" || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Tests that ask for one release must not get another one.
func TestCachedIsForOneRelease(t *testing.T) {
	sandbox(t, brokenGo)
	dir, err := Cached(Newest())
	if !errors.Is(err, ErrMissing) {
		t.Errorf("got %v", err)
	}
	fill(t, filepath.Join(filepath.Dir(dir), "v1.99.0-etcd-v3.9.0"), Etcd, APIServer)
	fill(t, dir, APIServer)
	if _, err := Cached(Newest()); !errors.Is(err, ErrMissing) {
		t.Errorf("an incomplete directory is accepted: %v", err)
	}
	fill(t, dir, Etcd)
	if got, err := Cached(Newest()); got != dir || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
