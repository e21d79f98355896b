package binaries

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestKubectlIsBuiltOnlyForThoseWhoAskForIt(t *testing.T) {
	calls := sandbox(t, fakeGo)
	dir, err := Build(t.Context(), Newest(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := FindKubectl(Newest()); !errors.Is(err, ErrNoKubectl) {
		t.Errorf("got %v", err)
	}
	for range 2 {
		got, err := BuildKubectl(t.Context(), Newest(), io.Discard)
		if want := filepath.Join(dir, Kubectl); got != want || !isExecutable(got) || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	made, err := os.ReadFile(calls)
	if err != nil || bytes.Count(made, []byte("cmd/kubectl")) != 1 {
		t.Errorf("got %v:\n%s", err, made)
	}
}

func TestKubectlOfTheEnvironmentIsUsed(t *testing.T) {
	sandbox(t, brokenGo)
	named := t.TempDir()
	t.Setenv(Variable, named)
	if got, err := FindKubectl(Newest()); !errors.Is(err, ErrNoKubectl) || filepath.Dir(got) == named {
		t.Errorf("got %q, %v", got, err)
	}
	fill(t, named, Kubectl)
	if got, err := BuildKubectl(t.Context(), Newest(), io.Discard); got != filepath.Join(named, Kubectl) || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestKubectlNeedsPins(t *testing.T) {
	sandbox(t, brokenGo)
	if _, err := FindKubectl(Pins{}); err == nil || errors.Is(err, ErrNoKubectl) {
		t.Errorf("got %v", err)
	}
}
