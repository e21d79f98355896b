package serve_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/serve"
	"github.com/kopf-go/kopf/pkg/serve/document"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
	"github.com/kopf-go/kopf/pkg/serve/worker"
)

// bench is an operator with one worker, in virtual time.
type bench struct {
	*kopftest.Harness
	t *testing.T

	mu      sync.Mutex
	calls   []*protocol.Call
	respond func(*protocol.Call) string // nothing is a worker that dies
	begins  int
	stopped bool
	program *serve.Program
	// revision takes the place of REVISION in the declarations. Default: 1.
	revision string
	// stops has the reasons of the messages that end daemons.
	stops []string
	// gone has the uids of objects that are gone.
	gone []string
	// continues returns the answer of a call whose sub-handlers have ended, or not.
	continues func(*protocol.Message) string
	// says returns what the worker says before it answers a call; nil for nothing.
	says func(*protocol.Call) string
}

const oneWorker = "kopf: v1\nworkers: {w: {command: [w]}}\n"

// newBench runs an operator with a file, whose worker declares the handlers and answers calls.
func newBench(t *testing.T, file, handlers string, respond func(*protocol.Call) string) *bench {
	t.Helper()
	return newBenchWith(t, file, handlers, respond)
}

func newBenchWith(t *testing.T, file, handlers string, respond func(*protocol.Call) string, with ...kopftest.Option) *bench {
	t.Helper()
	b := &bench{t: t, respond: respond}
	path := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Harness = kopftest.New(t, func() *kopf.Registry {
		if b.program != nil {
			_ = b.program.Close() // of the operator that has ended
		}
		program, err := serve.Load(t.Context(), serve.Options{Files: []string{path}, Logger: logr.Discard(), Start: func(*document.Worker) (*worker.Pipes, error) {
			return b.start(strings.ReplaceAll(handlers, "REVISION", cmp.Or(b.revision, "1"))), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		b.program = program
		r := kopf.NewRegistry()
		program.Declare(r)
		r.Configure(func(s *kopf.Settings) {
			if err := program.ApplySettings(s); err != nil {
				t.Error(err)
			}
		})
		return r
	}, append(with, kopftest.CRDs("../../examples/crd"))...)
	t.Cleanup(func() {
		b.Stop()
		if err := b.program.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// Stop stops the operator, once.
func (b *bench) Stop() {
	if !b.stopped {
		b.stopped = true
		b.Harness.Stop()
	}
}

// start starts the worker.
func (b *bench) start(handlers string) *worker.Pipes {
	b.mu.Lock()
	b.begins++
	b.mu.Unlock()
	theirInput, in := io.Pipe()
	out, theirOutput := io.Pipe()
	ended := make(chan struct{})
	var once sync.Once
	end := func() {
		once.Do(func() {
			_ = theirInput.Close()
			_ = theirOutput.Close()
			close(ended)
		})
	}
	go func() {
		_, _ = fmt.Fprintf(theirOutput, "{\"type\": \"hello\", \"version\": 1, \"memos\": true, \"handlers\": %s}\n", oneLine(handlers))
		lines := bufio.NewScanner(theirInput)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			m := &protocol.Message{}
			if err := json.Unmarshal(lines.Bytes(), m); err != nil {
				b.t.Errorf("the operator has sent %q: %v", lines.Text(), err)
			}
			b.receive(m, theirOutput, end)
		}
	}()
	return &worker.Pipes{In: in, Out: out, Stop: end, Kill: end, Wait: func() error { <-ended; return nil }}
}

func (b *bench) receive(m *protocol.Message, out io.Writer, end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	answer := "{}"
	switch m.Type {
	case protocol.Stop:
		b.stops = append(b.stops, m.Reason)
	case protocol.Gone:
		b.gone = append(b.gone, m.UID)
		return
	case protocol.Executed:
		answer = b.continues(m)
	case protocol.CallNow:
		b.calls = append(b.calls, m.Call)
		if b.says != nil {
			_, _ = io.WriteString(out, b.says(m.Call))
		}
		answer = b.respond(m.Call)
	default:
		return
	}
	switch answer {
	case "":
		go end()
	case "wait": // for the message that ends it
	default:
		go func() {
			_, _ = fmt.Fprintf(out, "{\"type\": \"answer\", \"id\": %q, \"answer\": %s}\n", m.ID, oneLine(answer))
		}()
	}
}

// oneLine returns JSON as one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// last returns the last call of a handler.
func (b *bench) last(handler string) *protocol.Call {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, call := range slices.Backward(b.calls) {
		if call.Handler == handler {
			return call
		}
	}
	b.t.Fatalf("the handler %s was not called", handler)
	return nil
}

// count returns how often a handler was called.
func (b *bench) count(handler string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, call := range b.calls {
		if call.Handler == handler {
			n++
		}
	}
	return n
}

// order returns the order of the calls of some handlers.
func (b *bench) order(handlers ...string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, call := range b.calls {
		if slices.Contains(handlers, call.Handler) {
			all = append(all, call.Handler)
		}
	}
	return all
}

func newExample(spec string) *unstructured.Unstructured {
	return kopftest.Object(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {namespace: default, name: one, labels: {a: b}}, spec: ` + spec + `}`)
}

func TestAChangeIsCalledWithItsArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker, `[
			{"create": "kopfexamples", "id": "made", "function": "module.made", "param": {"x": 1}},
			{"update": "kopfexamples", "id": "changed", "field": "spec.size"},
			{"delete": "kopfexamples", "id": "gone"}
		]`, func(c *protocol.Call) string {
			if c.Handler == "made" && c.Retry == 0 {
				return `{"error": {"message": "too early", "delay": 3600}}`
			}
			return `{"result": {"by": "` + c.Handler + `"}, "patch": {"metadata": {"labels": {"a": null, "c": "d"}}},
				"operations": [{"op": "add", "path": "/spec/list", "value": [1]}],
				"events": [{"reason": "Done", "message": "it is done"}],
				"conditions": [{"type": "Usable", "status": "True", "reason": "Made", "message": ""}]}`
		})
		object := newExample(`{size: 1}`)
		b.Create(object)
		b.Advance(time.Hour)
		b.Get(object)
		call := b.last("made")
		if call.Kind != protocol.Change || call.Function != "module.made" || call.Reason != "create" || call.Name != "one" || call.Namespace != "default" || call.UID != string(object.GetUID()) {
			t.Errorf("got the call %+v", call)
		}
		if call.Retry != 1 || call.Runtime < 3600 || call.Started == nil || call.Version != 1 || fmt.Sprint(call.Param) != "map[x:1]" || *call.Resource != (protocol.Resource{Group: "kopf.dev", Version: "v1", Kind: "KopfExample", Plural: "kopfexamples", Namespaced: true}) {
			t.Errorf("got the call %+v", call)
		}
		if call.Old != nil || !strings.Contains(string(call.New), `"size":1`) || len(call.Diff) != 1 {
			t.Errorf("got the states %s and %s, and the difference %v", call.Old, call.New, call.Diff)
		}
		by, _, _ := unstructured.NestedString(object.Object, "status", "made", "by")
		list, _, _ := unstructured.NestedSlice(object.Object, "spec", "list")
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		if by != "made" || object.GetLabels()["c"] != "d" || object.GetLabels()["a"] != "" || len(list) != 1 || len(conditions) != 1 {
			t.Errorf("got the object %v", object.Object)
		}
		if !slices.ContainsFunc(b.Events(), func(e corev1.Event) bool {
			return e.Reason == "Done" && e.Message == "it is done" && e.Type == "Normal"
		}) {
			t.Errorf("got the events %v", b.Events())
		}

		b.Patch(object, `{"spec": {"size": 2}}`)
		b.Settle()
		call = b.last("changed")
		if call.Reason != "update" || call.Field != "spec.size" || string(call.Old) != "1" || string(call.New) != "2" {
			t.Errorf("got the call %+v", call)
		}
		if diff, _ := json.Marshal(call.Diff); string(diff) != `[["change",[],1,2]]` {
			t.Errorf("got the difference %s", diff)
		}
		b.Delete(object)
		b.Settle()
		if call := b.last("gone"); call.Reason != "delete" || b.Exists(object) {
			t.Errorf("got the call %+v, and the object exists: %v", call, b.Exists(object))
		}
	})
}

// One function that is declared several times is one handler.
func TestAFunctionCanBeDeclaredSeveralTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker, `[{"create": "kopfexamples", "id": "fn"}, {"update": "kopfexamples", "id": "fn"}, {"resume": "kopfexamples", "id": "fn"}]`,
			func(*protocol.Call) string { return "{}" })
		object := newExample(`{size: 1}`)
		b.Create(object)
		b.Settle()
		b.Patch(object, `{"spec": {"size": 2}}`)
		b.Settle()
		b.Restart()
		b.Settle()
		if b.count("fn") != 3 || b.last("fn").Reason != "resume" {
			t.Errorf("got %d calls, the last one for %s", b.count("fn"), b.last("fn").Reason)
		}
	})
}

func TestErrorsOfAnswersAreThoseOfHandlers(t *testing.T) {
	for name, test := range map[string]struct {
		options, answer string
		calls           int
		within          time.Duration
	}{
		"permanent":            {"", `{"error": {"message": "no", "permanent": true}}`, 1, time.Hour},
		"temporary":            {"", `{"error": {"message": "wait", "delay": 600}}`, 7, time.Hour},
		"arbitrary":            {`, "backoff": "30m"`, `{"error": {"message": "oops"}}`, 3, time.Hour},
		"arbitrary, permanent": {`, "errors": "permanent"`, `{"error": {"message": "oops"}}`, 1, time.Hour},
		"arbitrary, ignored":   {`, "errors": "ignored"`, `{"error": {"message": "oops"}}`, 1, time.Hour},
		"limited":              {`, "retries": 2, "backoff": 1`, `{"error": {"message": "oops"}}`, 2, time.Hour},
		"unusable":             {`, "retries": 2, "backoff": 1`, `{"errror": {}}`, 2, time.Hour},
		"a wrong sub-handler":  {"", `{"subhandlers": [{"id": "a", "interval": 5}]}`, 1, time.Hour},
		"a dead worker":        {`, "retries": 3`, "", 3, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, oneWorker, `[{"create": "kopfexamples", "id": "fn"`+test.options+`}]`, func(*protocol.Call) string { return test.answer })
				b.Create(newExample(`{}`))
				b.Advance(test.within)
				if b.count("fn") != test.calls {
					t.Errorf("got %d calls within %s, want %d", b.count("fn"), test.within, test.calls)
				}
				if test.answer == "" && b.begins < 3 {
					t.Errorf("the worker was started %d times", b.begins)
				}
			})
		})
	}
}

// A call that takes too long is canceled, and tried again after the backoff.
func TestACallTimeoutIsAnArbitraryError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker+"limits: {callTimeout: 10m, stopTimeout: 1s}\n", `[{"create": "kopfexamples", "id": "fn", "callTimeout": 60, "backoff": 30}]`, func(c *protocol.Call) string {
			if c.Retry == 0 {
				return "wait"
			}
			return "{}"
		})
		b.Create(newExample(`{}`))
		b.Advance(2 * time.Minute)
		calls := b.Calls("fn")
		if len(calls) != 2 || !strings.Contains(calls[0].String(), "the call was canceled after 1m0s, which is its callTimeout") || b.last("fn").Runtime < 90 {
			t.Errorf("got %v", calls)
		}
	})
}

// Sub-handlers have their own progress, also over a restart of the operator.
func TestSubhandlersHaveTheirOwnCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker, `[{"create": "kopfexamples", "id": "fn"}]`, func(c *protocol.Call) string {
			switch c.Handler {
			case "fn":
				return `{"subhandlers": [{"id": "a"}, {"id": "b", "param": 5, "function": "other"}]}`
			case "fn/b":
				if c.Retry == 0 {
					return `{"error": {"message": "too early", "delay": 60}}`
				}
				return `{"subhandlers": [{"id": "deep"}]}`
			default:
				return `{"result": "` + c.Handler + `"}`
			}
		})
		object := newExample(`{}`)
		b.Create(object)
		b.Settle()
		if call := b.last("fn/a"); call.Function != "fn/a" || call.Parent == "" || call.Kind != protocol.Change {
			t.Errorf("got %+v", call)
		}
		b.Crash()
		b.Advance(2 * time.Minute)
		b.Get(object)
		if b.count("fn/a") != 1 || b.count("fn/b") != 2 || b.count("fn/b/deep") != 1 || b.last("fn/b").Function != "other" || fmt.Sprint(b.last("fn/b").Param) != "5" {
			t.Errorf("the sub-handlers were called %d, %d, and %d times; the last call is %+v", b.count("fn/a"), b.count("fn/b"), b.count("fn/b/deep"), b.last("fn/b"))
		}
		for _, id := range []string{"fn/a", "fn/b/deep"} {
			if result, _, _ := unstructured.NestedString(object.Object, "status", id); result != id {
				t.Errorf("the result of %s is %q", id, result)
			}
		}
	})
}

// A handler can wait for its sub-handlers, and continue when they have ended. They need no further place among the calls.
func TestSubhandlersAreCalledInTheMiddleOfACall(t *testing.T) {
	for name, subhandlers := range map[string]string{"two": `[{"id": "a"}, {"id": "b", "param": 5}]`, "a mistake": `[{"id": "a", "interval": 1}]`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, "kopf: v1\nworkers: {w: {command: [w], calls: 1}}\n", `[{"create": "kopfexamples", "id": "fn"}]`, func(c *protocol.Call) string {
					switch {
					case c.Handler == "fn":
						return "wait"
					case c.Handler == "fn/b" && c.Retry < 2:
						return `{"error": {"message": "too early", "delay": 60}}`
					default:
						return `{"result": "` + c.Handler + `"}`
					}
				})
				b.mu.Lock()
				b.says = func(c *protocol.Call) string {
					if c.Handler != "fn" {
						return ""
					}
					return fmt.Sprintf("{\"type\": \"execute\", \"id\": %q, \"subhandlers\": %s}\n", c.ID, subhandlers)
				}
				b.continues = func(m *protocol.Message) string {
					if m.Error != nil {
						return `{"error": {"message": "this does not matter"}, "patch": {"metadata": {"labels": {"begun": "yes"}}}}`
					}
					return `{"result": "done", "subhandlers": [{"id": "last"}]}`
				}
				b.mu.Unlock()
				object := newExample(`{}`)
				b.Create(object)
				b.Advance(10 * time.Minute)
				b.Get(object)
				want := []string{"fn", "fn/a", "fn/b", "fn", "fn/b", "fn", "fn/b", "fn/last"}
				result, _, _ := unstructured.NestedString(object.Object, "status", "fn")
				if name != "two" {
					want = []string{"fn"}
					if result != "" {
						t.Errorf("a handler with wrong sub-handlers has the result %q", result)
					}
				} else if result != "done" {
					t.Errorf("the result is %q", result)
				}
				if order := b.order("fn", "fn/a", "fn/b", "fn/last"); !slices.Equal(order, want) || object.GetLabels()["begun"] != "yes" {
					t.Errorf("the order of the calls is %q, want %q; the labels are %v", order, want, object.GetLabels())
				}
			})
		})
	}
}

func TestDaemonsAndTimersAreCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker, `[
			{"daemon": "kopfexamples", "id": "guard"},
			{"timer": "kopfexamples", "id": "tick", "interval": 600},
			{"event": "kopfexamples", "id": "seen"}
		]`, func(c *protocol.Call) string {
			if c.Kind == protocol.Daemon {
				return "wait"
			}
			return `{"patch": {"metadata": {"labels": {"` + c.Handler + `": "yes"}}}}`
		})
		object := newExample(`{}`)
		b.Create(object)
		b.Advance(time.Hour)
		b.Get(object)
		if b.count("guard") != 1 || b.count("tick") != 7 || object.GetLabels()["tick"] != "yes" || object.GetLabels()["seen"] != "yes" {
			t.Errorf("got %d and %d calls, and the labels %v", b.count("guard"), b.count("tick"), object.GetLabels())
		}
		if b.last("seen").Event != "MODIFIED" {
			t.Errorf("got the event %q", b.last("seen").Event)
		}
		b.Delete(object)
		b.Settle()
		if b.Exists(object) || len(b.stops) != 1 || !strings.Contains(b.stops[0], "deleted") {
			t.Errorf("the object exists: %v; the daemon was stopped because of %q", b.Exists(object), b.stops)
		}
	})
}

func TestChildrenAreEnsured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker+"settings: {name: test}\n", `[{"ensure": "kopfexamples", "id": "children"}]`, func(*protocol.Call) string {
			return `{"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b"}}]}`
		})
		object := newExample(`{}`)
		b.Create(object)
		b.Settle()
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}
		b.Get(child)
		if child.Data["a"] != "b" || len(child.OwnerReferences) != 1 || child.OwnerReferences[0].UID != object.GetUID() {
			t.Errorf("got the child %v", child)
		}
	})
}

func TestMistakesOfDeclarationsNameTheirPlaces(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"an id of two programs": {"kopf: v1\nhandlers:\n- {create: a, id: fn, run: [a]}\n- {update: a, id: fn, run: [b]}", "operator.yaml:4: the id \"fn\" is taken by another handler at "},
		"a wrong id":            {"kopf: v1\nhandlers:\n- {create: a, id: 'a b', run: [a]}", "operator.yaml:3: the create handler \"a b\": "},
		"an unknown order":      {"kopf: v1\nhandlers:\n- {create: a, id: b, after: c, run: [a]}", "operator.yaml:3: "},
		"a wrong address":       {"kopf: v1\nhandlers:\n- {create: a, id: b, url: 'example.com'}", `operator.yaml:3: the create handler "b": the url "example.com" must begin with https:// or http://, and a host`},
		"an unknown index":      {"kopf: v1\nhandlers:\n- {index: a, id: colors, run: [a]}\n- {create: a, id: b, indices: [colours], run: [b]}", `operator.yaml:4: the create handler "b" is about the index "colours", which is not declared: did you mean colors?`},
		"no index":              {"kopf: v1\nsettings: {name: a}\nhandlers:\n- {ensure: a, id: b, watchIndices: [c], run: [b]}", `operator.yaml:4: the ensure handler "b" is about the index "c", which is not declared: add a handler with index: and this id`},
		"a one-way conversion":  {"kopf: v1\nhandlers:\n- {convert: a, id: b, from: v1, to: v2, run: [b]}", `operator.yaml:3: `},
		"a wrong verb":          {"kopf: v1\nneeds:\n- {resource: a, verbs: [Get]}\nhandlers:\n- {create: a, id: b, run: [b]}", `operator.yaml:3: kopf.Needs for `},
		"an unknown ensurer":    {"kopf: v1\nsettings: {name: a}\nhandlers:\n- {ensure: a, id: b, run: [b]}\n- {drift: a, id: c, ensuredBy: d, run: [b]}", `operator.yaml:5: `},
		"a worker of no use":    {"kopf: v1\nworkers: {w: {command: ['./no-such-worker']}}", "operator.yaml:2: the worker w (./no-such-worker) does not work: "},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "operator.yaml")
			if err := os.WriteFile(path, []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
			err := declareAll(t, path)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// declareAll returns the mistakes of a file, as an operator finds them.
func declareAll(t *testing.T, path string) error {
	t.Helper()
	program, err := serve.Load(t.Context(), serve.Options{Files: []string{path}, Logger: logr.Discard()})
	if err != nil {
		return err
	}
	defer func() {
		if err := program.Close(); err != nil {
			t.Error(err)
		}
	}()
	r := kopf.NewRegistry()
	program.Declare(r)
	_, err = kopf.NewOperator(kopf.Options{Registry: r})
	return err
}

// A variable that is missing in a pod is found in the log.
func TestMissingVariablesAreLogged(t *testing.T) {
	t.Setenv("KOPF_TEST_SET", "a")
	path := filepath.Join(t.TempDir(), "operator.yaml")
	text := "kopf: v1\nhandlers:\n- {create: a, id: a, run: [a], environment: [KOPF_TEST_SET, KOPF_TEST_UNSET]}\n- {create: a, id: b, run: [b], environment: [KOPF_TEST_UNSET]}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var lines []string
	logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	program, err := serve.Load(t.Context(), serve.Options{Files: []string{path}, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Close(); err != nil {
		t.Error(err)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], `"variable"="KOPF_TEST_UNSET"`) {
		t.Errorf("got the lines %q", lines)
	}
}

// Handlers that use the cluster use that of the operator.
func TestProgramsGetTheClusterOfTheOperator(t *testing.T) {
	t.Setenv("KUBECONFIG", "/another/cluster")
	for name, test := range map[string]struct{ given, want string }{
		"of a flag": {"/the/cluster", "/the/cluster"}, "of the environment": {"", "/another/cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "operator.yaml")
			text := "kopf: v1\nworkers:\n  w:\n    environment: [KUBECONFIG]\n    command:\n    - sh\n    - -c\n    - |\n" +
				"      echo \"it is $KUBECONFIG\" >&2\n      echo '{\"type\": \"hello\", \"version\": 1, \"handlers\": [{\"create\": \"a\", \"id\": \"b\"}]}'\n      cat >/dev/null\n"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var lines []string
			logger := funcr.New(func(_, line string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, line)
			}, funcr.Options{})
			program, err := serve.Load(t.Context(), serve.Options{Files: []string{path}, Logger: logger, Kubeconfig: test.given})
			if err != nil {
				t.Fatal(err)
			}
			if err := program.Close(); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if !strings.Contains(strings.Join(lines, "\n"), "it is "+test.want) {
				t.Errorf("got the lines %q", lines)
			}
		})
	}
}
