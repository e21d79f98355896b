//go:build unix

package launch

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// shell returns a program and arguments that run a script.
func shell(script string) (string, []string) { return "/bin/sh", []string{"-c", script} }

func TestExitCodesOfPrograms(t *testing.T) {
	tests := map[string]struct {
		script string
		code   int
		failed string
	}{
		"success":          {"exit 0", 0, ""},
		"a usage error":    {"exit 2", 2, ""},
		"a killed program": {"kill -9 $$", 0, "the operator was killed: signal: killed"},
		"no output":        {"true", 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program, arguments := shell(test.script)
			code, err := Run(program, arguments, nil, io.Discard, io.Discard)
			if code != test.code || (err == nil) != (test.failed == "") || (err != nil && err.Error() != test.failed) {
				t.Errorf("got %d, %v", code, err)
			}
		})
	}
	if _, err := Run("/nonsense", nil, nil, io.Discard, io.Discard); err == nil || !strings.HasPrefix(err.Error(), "the operator could not be started: ") {
		t.Errorf("got %v", err)
	}
}

func TestProgramsGetArgumentsAndEnvironmentAndWriteOutput(t *testing.T) {
	var out, log bytes.Buffer
	program, arguments := shell(`echo "out $1"; echo "log $2 $WITH" >&2`)
	code, err := Run(program, append(arguments, "operator", "a b", "c"), []string{"WITH=environment"}, &out, &log)
	if code != 0 || err != nil || out.String() != "out a b\n" || log.String() != "log c environment\n" {
		t.Errorf("got %d, %v, %q, %q", code, err, out.String(), log.String())
	}
}

// Run forwards each signal once, and waits until the program has ended.
func TestSignals(t *testing.T) {
	out, in := io.Pipe()
	program, arguments := shell(`n=0; trap 'n=$((n+1)); echo signal $n' TERM HUP; trap 'exit $n' INT; echo ready; while :; do sleep 0.02; done`)
	ended := make(chan int)
	go func() {
		code, err := Run(program, arguments, nil, in, io.Discard)
		if err != nil {
			t.Error(err)
		}
		ended <- code
	}()
	lines := bufio.NewScanner(out)
	for i, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		want := []string{"ready", "signal 1", "signal 2"}[i]
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("got %q, want %q", lines.Text(), want)
		}
		if err := syscall.Kill(os.Getpid(), signal); err != nil {
			t.Fatal(err)
		}
	}
	if code := <-ended; code != 2 {
		t.Errorf("got %d", code)
	}
}
