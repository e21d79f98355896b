package assets

import (
	"bytes"
	"context"
	"errors"
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
			dir, err := Ensure(context.Background(), &bytes.Buffer{})
			if err != nil || !complete(dir) {
				t.Errorf("Ensure: %q, %v", dir, err)
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

// Who asks for a release must not get another one that the environment names.
func TestTheOldestReleaseIsBuiltWhateverTheEnvironmentNames(t *testing.T) {
	calls := sandbox(t, fakeGo)
	named := t.TempDir()
	place(t, named, Etcd, APIServer)
	t.Setenv(Variable, named)
	dir, err := EnsureRelease(context.Background(), Oldest, &bytes.Buffer{})
	newest, _, _ := cache(Newest)
	if err != nil || !complete(dir) || dir == named || dir == newest {
		t.Errorf("EnsureRelease: %q, %v", dir, err)
	}
	if made, _ := os.ReadFile(calls); bytes.Count(made, []byte("\n")) != 2 {
		t.Errorf("both binaries must be built:\n%s", made)
	}
}

func TestEnsureBuildsOnlyMissingBinaries(t *testing.T) {
	calls := sandbox(t, fakeGo)
	dir, _, err := cache(Newest)
	if err != nil {
		t.Fatal(err)
	}
	place(t, dir, Etcd)
	if _, err := Ensure(context.Background(), &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if made, _ := os.ReadFile(calls); bytes.Contains(made, []byte(etcdModule)) {
		t.Errorf("etcd existed already:\n%s", made)
	}
}

func TestFailedBuildReportsTheReasonAndLeavesNoFiles(t *testing.T) {
	sandbox(t, brokenGo)
	_, err := Ensure(context.Background(), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("the error must contain the output of the go command: %v", err)
	}
	dir, _, _ := cache(Newest)
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".build-*"))
	if complete(dir) || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFind(t *testing.T) {
	tests := map[string]struct {
		named, cached []string
		want          string
	}{
		"no binaries":                               {nil, nil, ""},
		"the directory named by the environment":    {[]string{Etcd, APIServer}, []string{Etcd, APIServer}, "named"},
		"the cache if that directory is incomplete": {[]string{Etcd}, []string{Etcd, APIServer}, "cached"},
		"an incomplete cache":                       {nil, []string{APIServer}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sandbox(t, brokenGo)
			cached, _, err := cache(Newest)
			if err != nil {
				t.Fatal(err)
			}
			dirs := map[string]string{"named": t.TempDir(), "cached": cached}
			place(t, dirs["named"], test.named...)
			place(t, cached, test.cached...)
			t.Setenv(Variable, dirs["named"])

			got, err := Find()
			if got != dirs[test.want] || errors.Is(err, ErrMissing) != (test.want == "") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func place(t *testing.T, dir string, names ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
