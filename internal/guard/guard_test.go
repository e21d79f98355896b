package guard

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
)

// orphanage is the environment variable that makes this test binary the process that
// dies without cleanup.
const orphanage = "GUARD_TEST_ORPHANAGE"

func TestMain(m *testing.M) {
	if os.Getenv(orphanage) != "" {
		dieWithAChild()
	}
	os.Exit(m.Run())
}

// dieWithAChild starts a guarded child that inherits the standard output, reports
// that, and exits without stopping the child once its standard input is closed.
func dieWithAChild() {
	guard, err := New()
	if err != nil {
		panic(err)
	}
	script, err := guard.Wrap("/bin/cat")
	if err != nil {
		panic(err)
	}
	child := exec.Command(script, "-", "/dev/zero")
	child.Stdin, child.Stdout = strings.NewReader(guard.Dir()+"\n"), os.Stdout
	if err := child.Start(); err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(3)
}

func TestChildrenStopWhenTheParentDies(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), orphanage+"=yes")
	stdin, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal("the child did not start: ", err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	// The child writes endlessly: its output ends only when it is stopped.
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Fatal(err)
	}
	if err := parent.Wait(); err == nil {
		t.Error("the parent should have failed")
	}
	gomega.NewWithT(t).Eventually(strings.TrimSpace(line), "20s").ShouldNot(gomega.BeADirectory())
}

func TestReleaseDoesNotStopRunningProcesses(t *testing.T) {
	guard, err := New()
	if err != nil {
		t.Fatal(err)
	}
	script, err := guard.Wrap("/bin/cat")
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(script)
	stdin, _ := child.StdinPipe()
	stdout, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	echo(t, stdin, stdout)
	if err := guard.Release(); err != nil {
		t.Fatal(err)
	}
	echo(t, stdin, stdout)
	_ = stdin.Close()
	if err := child.Wait(); err != nil {
		t.Errorf("the child was disturbed: %v", err)
	}
}

func echo(t *testing.T, stdin io.Writer, stdout io.Reader) {
	t.Helper()
	if _, err := io.WriteString(stdin, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestWrapPreservesArgumentsAndStatus(t *testing.T) {
	guard, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := guard.Release(); err != nil {
			t.Error(err)
		}
	}()
	odd := filepath.Join(t.TempDir(), "it's a shell")
	if err := os.Symlink("/bin/sh", odd); err != nil {
		t.Fatal(err)
	}
	script, err := guard.Wrap(odd)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(script, "-c", `echo "$1"; exit 7`, "sh", "two words").Output()
	var status *exec.ExitError
	if !errors.As(err, &status) || status.ExitCode() != 7 || string(out) != "two words\n" {
		t.Errorf("got %q, %v", out, err)
	}
}
