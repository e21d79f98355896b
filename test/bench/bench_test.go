package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(operate(role)) // the tests start this binary as operators
	}
	if word := os.Getenv(answersVariable); word != "" {
		os.Exit(beHandlers(word)) // which start it as handlers
	}
	if os.Getenv(profiledVariable) != "" {
		os.Exit(serveProfiles(os.Args[1:])) // and as a program outside
	}
	ctrl.SetLogger(logr.Discard()) // of the control plane; once, because the tests run in parallel
	os.Exit(m.Run())
}

// shared is a buffer for the output of the test and of the operator processes.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shared) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(text)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// The test checks counts only: times depend on the machine.
func TestOperatorsWriteEquallyOftenAndNothingAtRest(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var log shared
	subjects := []string{ours, theirs, oursWorker}
	err := run(t.Context(), []string{"-n", "20", "-window", "2s", "-json", "-subjects", strings.Join(subjects, ",")}, &out, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	var measured report
	if err := json.Unmarshal(out.Bytes(), &measured); err != nil || len(measured.Subjects) != len(subjects) {
		t.Fatalf("%v\n%s", err, &out)
	}
	for i, f := range measured.Subjects {
		counts := map[string]struct{ got, want float64 }{
			"for a creation":  {f.Create.WritesPerObject, 3},
			"for an update":   {f.Update.WritesPerObject, 2},
			"for a deletion":  {f.Delete.WritesPerObject, 1},
			"at rest":         {float64(f.Rest.Requests.Writes), 0},
			"after a restart": {float64(f.Restart.Requests.Writes), 0},
		}
		for when, count := range counts {
			if count.got != count.want || f.Subject != subjects[i] {
				t.Errorf("%s: %v writes %s, want %v", f.Subject, count.got, when, count.want)
			}
		}
		if f.Create.CPUPerObject <= 0 || f.Create.ObjectsPerSecond <= 0 || f.Loaded.Resident <= 0 || f.Restart.Ready <= 0 {
			t.Errorf("%s: a figure is missing: %+v", f.Subject, f)
		}
	}
	if err := measured.print(&out); err != nil || !strings.Contains(out.String(), "goal: 0.8") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// A program starts for each call, which takes too long for a test with an operator.
func TestAProgramAnswersOneCall(t *testing.T) {
	for handler, want := range map[string]string{
		"apply":  `{"result":{"url":"https://h.example.com/","ready":true,"revision":7}}`,
		"remove": `{}`,
	} {
		call := `{"version": 1, "handler": "` + handler + `", "object": {"spec": {"host": "h.example.com", "revision": 7}}}`
		var out bytes.Buffer
		if err := answerCalls("run", strings.NewReader(call), &out); err != nil || strings.TrimSpace(out.String()) != want {
			t.Errorf("%v %s, want %s", err, &out, want)
		}
	}
	if err := answerCalls("run", strings.NewReader("no JSON"), io.Discard); err == nil {
		t.Error("no error")
	}
}

func TestRunChecksTheCommandLine(t *testing.T) {
	var out, log bytes.Buffer
	for _, arguments := range [][]string{
		{"-n", "x"}, {"-subjects", "unknown"}, {"-nonsense"}, {"-children", "-metacontroller", "/no/such/program"},
	} {
		if err := run(t.Context(), arguments, &out, &log); err == nil {
			t.Errorf("%v: no error", arguments)
		}
	}
	log.Reset()
	err := run(t.Context(), []string{"-subjects", ours + "," + childrenExternal}, &out, &log)
	if err == nil || !strings.Contains(err.Error(), "add -metacontroller PATH") || log.Len() > 0 {
		t.Errorf("%v\n%s", err, &log) // before anything is measured
	}
}

func TestNewExampleHasTheGivenSize(t *testing.T) {
	least, err := newExample(7, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, len(least) + 50, 1024, 10_000} {
		if text, err := newExample(7, size); err != nil || len(text) != max(size, len(least)) {
			t.Errorf("%d bytes, want %d (%v)", len(text), size, err)
		}
	}
}
