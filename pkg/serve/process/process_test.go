//go:build unix

package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/serve/process"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
)

// victim is the environment variable that makes this test binary an operator that is killed.
const victim = "PROCESS_TEST_VICTIM"

func TestMain(m *testing.M) {
	if pids := os.Getenv(victim); pids != "" {
		waitForTheKill(pids)
	}
	os.Exit(m.Run())
}

// waitForTheKill runs a program with something in the background, which writes the ids of both to a file.
func waitForTheKill(pids string) {
	starter, err := process.NewStarter()
	if err != nil {
		panic(err)
	}
	script := `trap '' TERM; sleep 1000 & echo $$ $! >"$0.tmp" && mv "$0.tmp" "$0"; wait`
	_, err = caller(starter, "sh", "-c", script, pids).Call(context.Background(), &protocol.Call{}, &protocol.Conversation{})
	panic(fmt.Sprint("the program has ended: ", err))
}

func caller(starter *process.Starter, command ...string) *process.Caller {
	return &process.Caller{
		Starter: starter, Program: process.Program{Command: command, Environment: []string{"PATH=" + os.Getenv("PATH")}, StopTimeout: time.Minute},
		Output: 1 << 16, Calls: make(process.Slots, 10), Daemons: make(process.Slots, 10),
	}
}

func newStarter(t *testing.T) *process.Starter {
	t.Helper()
	starter, err := process.NewStarter()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := starter.Close(); err != nil {
			t.Error(err)
		}
	})
	return starter
}

func TestTheOutcomeOfAProgramIsItsAnswerOrItsExitStatus(t *testing.T) {
	starter := newStarter(t)
	minute := 60.0
	second := 1.0
	for name, test := range map[string]struct {
		script string
		want   protocol.Answer
		err    string
	}{
		"no output":                     {"", protocol.Answer{}, ""},
		"blank output":                  {"echo", protocol.Answer{}, ""},
		"a result":                      {`echo '{"result": {"a": 1}}'`, protocol.Answer{Result: map[string]any{"a": int64(1)}}, ""},
		"a temporary exit":              {"exit 75", protocol.Answer{Error: &protocol.Error{Message: "exit status 75", Delay: &minute}}, ""},
		"a temporary exit with a delay": {`echo '{"error": {"message": "busy", "delay": 1}}'; exit 75`, protocol.Answer{Error: &protocol.Error{Message: "busy", Delay: &second}}, ""},
		"another exit":                  {"echo one >&2; echo two >&2; exit 3", protocol.Answer{Error: &protocol.Error{Message: "exit status 3: two"}}, ""},
		"another exit, no JSON":         {"echo nonsense; exit 3", protocol.Answer{Error: &protocol.Error{Message: "exit status 3"}}, ""},
		"a permanent error":             {`echo '{"error": {"message": "no", "permanent": true}}'`, protocol.Answer{Error: &protocol.Error{Message: "no", Permanent: true}}, ""},
		"a signal":                      {"kill -9 $$", protocol.Answer{Error: &protocol.Error{Message: "signal: killed"}}, ""},
		"no JSON":                       {"echo nonsense", protocol.Answer{}, `the answer cannot be used: it must be a JSON object, and begins with "nonsense"`},
		"a mistyped word":               {`echo '{"error": {"message": "a", "permanen": true}}'`, protocol.Answer{}, "unknown word error.permanen: did you mean permanent?"},
		"a flood":                       {"yes", protocol.Answer{}, "the program was killed, because its output has more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := caller(starter, "sh", "-c", test.script).Call(t.Context(), &protocol.Call{}, &protocol.Conversation{})
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, _ := json.Marshal(reply.Answer)
			want, _ := json.Marshal(test.want)
			if string(got) != string(want) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestAProgramThatDoesNotExistIsAnError(t *testing.T) {
	_, err := caller(newStarter(t), "./no-such-program").Call(t.Context(), &protocol.Call{}, &protocol.Conversation{})
	if err == nil || !strings.Contains(err.Error(), "./no-such-program cannot start: ") {
		t.Errorf("got %v", err)
	}
}

// The program gets the call, the variables that it was given, and no others.
func TestAProgramGetsItsCallAndNoOtherVariables(t *testing.T) {
	t.Setenv("SECRET_OF_THE_OPERATOR", "s3cr3t")
	call := &protocol.Call{Handler: "fn", Kind: protocol.Change, Reason: "create", Name: "$(touch /tmp/x)", Namespace: "ns", Retry: 2}
	reply, err := caller(newStarter(t), "sh", "-c", `printf '{"result": {"call": %s, "name": "%s", "env": "%s"}}' "$(cat)" "$KOPF_CALL_NAME" "$(env | cut -d= -f1 | sort | tr '\n' ' ')"`).
		Call(t.Context(), call, &protocol.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := reply.Result.(map[string]any)
	read, _ := got["call"].(map[string]any)
	if read["handler"] != "fn" || read["name"] != "$(touch /tmp/x)" || got["name"] != "$(touch /tmp/x)" {
		t.Errorf("got %v", got)
	}
	want := "KOPF_CALL_HANDLER KOPF_CALL_KIND KOPF_CALL_NAME KOPF_CALL_NAMESPACE KOPF_CALL_REASON KOPF_CALL_RETRY KOPF_CALL_UID PATH PWD "
	if env := strings.ReplaceAll(fmt.Sprint(got["env"]), "SHLVL ", ""); strings.ReplaceAll(env, "_ ", "") != strings.ReplaceAll(want, "_ ", "") {
		t.Errorf("got the variables %s, want %s", env, want)
	}
}

func TestStandardErrorIsTheLogLineByLine(t *testing.T) {
	var lines []string
	during := &protocol.Conversation{Log: func(l protocol.LogLine) { lines = append(lines, l.Message) }}
	script := `printf 'one\n\033[31mtwo\n' >&2; head -c 5000 /dev/zero | tr '\0' x >&2; echo >&2; yes | head -1500 >&2; printf end >&2`
	if _, err := caller(newStarter(t), "sh", "-c", script).Call(t.Context(), &protocol.Call{}, during); err != nil {
		t.Fatal(err)
	}
	if len(lines) != process.MaxLines+1 || lines[0] != "one" || lines[1] != "[31mtwo" || lines[2] != strings.Repeat("x", process.MaxLine)+"…" {
		t.Errorf("got %d lines, which begin with %.100q", len(lines), lines[:2])
	}
	if last := lines[len(lines)-1]; last != "504 further lines of standard error are left out." {
		t.Errorf("the last line is %q", last)
	}
}

// A canceled program is asked to end, and killed after a while, with all that it has started.
func TestACanceledProgramEndsWithItsGroup(t *testing.T) {
	for name, script := range map[string]string{
		"it obeys":   `sleep 1000 & echo $! >&2; wait`,
		"it ignores": `trap '' TERM; sleep 1000 & echo $! >&2; wait; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			c := caller(newStarter(t), "sh", "-c", script)
			c.Program.StopTimeout = 100 * time.Millisecond
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("the test is over")
			var background int
			_, err := c.Call(ctx, &protocol.Call{}, &protocol.Conversation{Log: func(l protocol.LogLine) {
				if background == 0 {
					background, _ = strconv.Atoi(l.Message)
					cancel(why)
				}
			}})
			if !errors.Is(err, why) {
				t.Errorf("got %v", err)
			}
			expectGone(t, background)
		})
	}
}

// What a program leaves in the background ends with it.
func TestTheEndOfAProgramIsTheEndOfItsGroup(t *testing.T) {
	var background int
	_, err := caller(newStarter(t), "sh", "-c", `sleep 1000 & echo $! >&2`).Call(t.Context(), &protocol.Call{}, &protocol.Conversation{
		Log: func(l protocol.LogLine) { background, _ = strconv.Atoi(l.Message) },
	})
	if err != nil {
		t.Fatal(err)
	}
	expectGone(t, background)
}

func TestADaemonIsAskedToEnd(t *testing.T) {
	whenReady := func(do func()) func(protocol.LogLine) {
		return func(l protocol.LogLine) {
			if l.Message == "ready" { // the shell reports the signal, too
				do()
			}
		}
	}
	stopped := make(chan struct{})
	reply, err := caller(newStarter(t), "sh", "-c", `trap 'echo "{\"result\": \"ended\"}"; exit 0' TERM; echo ready >&2; while :; do sleep 0.01; done`).
		Call(t.Context(), &protocol.Call{Kind: protocol.Daemon}, &protocol.Conversation{Stopped: stopped, Log: whenReady(func() { close(stopped) })})
	if err != nil || reply.Result != "ended" {
		t.Errorf("got %+v, %v", reply, err)
	}
	stopped = make(chan struct{})
	reply, err = caller(newStarter(t), "sh", "-c", `echo ready >&2; exec sleep 1000`).
		Call(t.Context(), &protocol.Call{Kind: protocol.Daemon}, &protocol.Conversation{Stopped: stopped, Log: whenReady(func() { close(stopped) })})
	if err != nil || reply.Error != nil {
		t.Errorf("a daemon that ends by the signal has failed: %+v, %v", reply, err)
	}
}

func TestCallsWaitForASlot(t *testing.T) {
	c := caller(newStarter(t), "true")
	c.Calls = make(process.Slots, 1)
	c.Calls <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, &protocol.Call{}, &protocol.Conversation{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v without a slot", err)
	}
	if _, err := c.Call(t.Context(), &protocol.Call{Kind: protocol.Daemon}, &protocol.Conversation{}); err != nil {
		t.Errorf("a daemon has waited for a slot of calls: %v", err)
	}
	<-c.Calls
	if _, err := c.Call(t.Context(), &protocol.Call{}, &protocol.Conversation{}); err != nil || len(c.Calls) != 0 {
		t.Errorf("got %v, and %d slots are taken", err, len(c.Calls))
	}
}

// Neither a program nor what it has started outlives an operator that is killed.
func TestNoProcessOutlivesAKilledOperator(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	operator := exec.Command(os.Args[0])
	operator.Env = append(os.Environ(), victim+"="+pids)
	if err := operator.Start(); err != nil {
		t.Fatal(err)
	}
	var program, background int
	gomega.NewWithT(t).Eventually(func() error {
		text, err := os.ReadFile(pids)
		if err == nil {
			_, err = fmt.Sscan(string(text), &program, &background)
		}
		return err
	}, "30s", "10ms").Should(gomega.Succeed())
	for _, pid := range []int{program, background} {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Fatalf("the process %d does not run: %v", pid, err)
		}
	}
	if err := operator.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = operator.Wait() // it was killed
	expectGone(t, program)
	expectGone(t, background)
}

// A leak shows after a few hundred calls.
var calls = flag.Int("calls", 200, "how many calls may leave nothing behind")

func TestCallsLeaveNothingBehind(t *testing.T) {
	starter := newStarter(t)
	c := caller(starter, "true")
	call := func() {
		if _, err := c.Call(t.Context(), &protocol.Call{}, &protocol.Conversation{}); err != nil {
			t.Fatal(err)
		}
	}
	call()
	before := descriptors(t)
	for range *calls {
		call()
	}
	if after := descriptors(t); after > before+2 {
		t.Errorf("%d descriptors were open, and %d are after %d calls", before, after, *calls)
	}
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); pid > 0 {
		t.Errorf("the process %d is a zombie (%v)", pid, err)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// expectGone waits until a process does not run anymore. Its parent may be slow to notice that.
func expectGone(t *testing.T, pid int) {
	t.Helper()
	if pid == 0 {
		t.Fatal("the process has no id")
	}
	gomega.NewWithT(t).Eventually(func() bool {
		if err := syscall.Kill(pid, 0); err != nil {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(stat), ") Z ")
	}, "30s", "10ms").Should(gomega.BeTrue(), "the process %d still runs", pid)
}
