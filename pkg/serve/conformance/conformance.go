// Package conformance tests workers of kopf serve in any language: the command kopf conformance.
//
// Some checks are for every worker: that it says hello in time, speaks the version, declares handlers that can be
// declared, writes nothing else to its standard output, and ends with its input. The others call handlers with
// known ids, which the author of an adapter writes for this purpose; docs/protocol.md lists them. A check
// whose handler is not declared is reported as not tested.
//
// This package carries no compatibility promise.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/kopf-go/kopf/pkg/serve/document"
	"github.com/kopf-go/kopf/pkg/serve/process"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
	"github.com/kopf-go/kopf/pkg/serve/worker"
)

// patience is how long a worker may take for anything.
const patience = 10 * time.Second

// ErrFailed means that some checks have failed. The report names them.
var ErrFailed = errors.New("the worker does not conform")

// Run tests a worker, and writes a report. It returns ErrFailed if a check has failed.
func Run(ctx context.Context, command []string, out, log io.Writer) error {
	starter, err := process.NewStarter()
	if err != nil {
		return err
	}
	defer func() { _ = starter.Close() }() // the report says all
	t := &tester{starter: starter, command: command, out: out, log: log}
	t.run(ctx)
	if t.failed > 0 {
		return ErrFailed
	}
	return nil
}

// tester makes the checks.
type tester struct {
	starter  *process.Starter
	command  []string
	out, log io.Writer

	worker     *worker.Worker
	declared   map[string]*document.Declaration // by their ids
	failed     int
	untested   int
	successful int
}

// check is one check, with the id of the handler that it calls.
type check struct {
	about string
	id    string
	run   func(context.Context, *tester) error
}

func checks() []check {
	return []check{
		{"a result is returned, as the parameter that it was given", "conformance-echo", checkEcho},
		{"many calls are open at the same time, and each gets its own answer", "conformance-sleep", checkConcurrency},
		{"a patch is returned", "conformance-patch", checkPatch},
		{"a temporary error has its delay", "conformance-temporary", checkTemporary},
		{"a permanent error is permanent", "conformance-permanent", checkPermanent},
		{"any other error is neither", "conformance-error", checkError},
		{"a line is logged for the object, and an event is posted", "conformance-log", checkLog},
		{"sub-handlers are declared, called, and forgotten", "conformance-subhandlers", checkSubhandlers},
		{"sub-handlers are called in the middle of a call, which continues then", "conformance-execute", checkExecution},
		{"a canceled call ends", "conformance-wait", checkCancellation},
		{"a canceled call that cannot be interrupted is answered when its work has ended", "conformance-finish", checkUninterrupted},
		{"a daemon ends when it is asked to", "conformance-daemon", checkDaemon},
		{"an index has keys and values", "conformance-index", checkIndex},
		{"an answer of a megabyte is one line", "conformance-large", checkLarge},
	}
}

func (t *tester) run(ctx context.Context) {
	t.worker = worker.New(worker.Options{
		Name: "under test", Start: t.start, Calls: 200, StartTimeout: patience, StopTimeout: patience, MaxLine: document.DefaultOutput, Logger: logr.Discard(),
	})
	if !t.report("it says hello within 10s, in version 1 of the protocol, and declares handlers", t.greet(ctx)) {
		t.worker.Close()
		return
	}
	for _, each := range checks() {
		if t.declared[each.id] == nil {
			t.untested++
			t.say("NOT TESTED  %s: there is no handler %s", each.about, each.id)
			continue
		}
		limited, cancel := context.WithTimeout(ctx, patience)
		t.report(each.about, each.run(limited, t))
		cancel()
	}
	begun := time.Now()
	t.worker.Close()
	var late error
	if took := time.Since(begun); took >= patience {
		late = fmt.Errorf("it was killed after %s", patience)
	}
	t.report("it ends with its input", late)
	t.say("%d passed, %d failed, %d not tested", t.successful, t.failed, t.untested)
}

// start starts the worker. Its standard error is passed on.
func (t *tester) start() (*worker.Pipes, error) {
	program := process.Program{Command: t.command, Environment: os.Environ(), StopTimeout: patience}
	return worker.FromProgram(t.starter, program, logTo(t.log))()
}

func (t *tester) say(format string, values ...any) {
	_, _ = fmt.Fprintf(t.out, format+"\n", values...)
}

// report reports a check, and returns whether it has passed.
func (t *tester) report(about string, err error) bool {
	if err != nil {
		t.failed++
		t.say("FAILED      %s: %v", about, err)
		return false
	}
	t.successful++
	t.say("passed      %s", about)
	return true
}

// greet starts the worker, and reads its declarations.
func (t *tester) greet(ctx context.Context) error {
	handlers, err := t.worker.Handlers(ctx)
	if err != nil {
		return err
	}
	t.declared = map[string]*document.Declaration{}
	if len(handlers) == 0 {
		return nil
	}
	all, err := document.ParseHello(&document.Worker{Name: "under test"}, "", handlers)
	for _, each := range all {
		t.declared[each.ID] = each
	}
	return err
}

// newCall returns a call of a handler.
func (t *tester) newCall(id string, kind protocol.Kind, param any) *protocol.Call {
	function := id
	if d := t.declared[id]; d != nil && d.Function != "" {
		function = d.Function
	}
	started := time.Now().UTC()
	return &protocol.Call{
		Version: protocol.Version, Handler: id, Function: function, Kind: kind, Reason: "create", Param: param, Started: &started,
		Resource:  &protocol.Resource{Group: "kopf.dev", Version: "v1", Kind: "KopfExample", Plural: "kopfexamples", Namespaced: true},
		Namespace: "default", Name: "conformance", UID: "00000000-0000-0000-0000-000000000000",
		Object: json.RawMessage(`{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{"name":"conformance","namespace":"default","uid":"00000000-0000-0000-0000-000000000000"},"spec":{}}`),
		New:    json.RawMessage(`{"spec":{}}`), Diff: []protocol.DiffItem{{Op: "add", New: map[string]any{"spec": map[string]any{}}}},
	}
}

// call calls a handler of changes.
func (t *tester) call(ctx context.Context, id string, param any, during *protocol.Conversation) (*protocol.Reply, error) {
	if during == nil {
		during = &protocol.Conversation{}
	}
	return t.worker.Call(ctx, t.newCall(id, protocol.Change, param), during)
}

func checkEcho(ctx context.Context, t *tester) error {
	params := []any{"text", "Ünïcödé ☸ \u2028 \"quoted\"\n", true, int64(1), int64(9007199254740991), 1.5}
	params = append(params, []any{int64(1), []any{}}, map[string]any{"a": map[string]any{"b": []any{"c"}}})
	for _, param := range params {
		reply, err := t.call(ctx, "conformance-echo", param, nil)
		switch {
		case err != nil:
			return err
		case reply.Error != nil:
			return fmt.Errorf("the error of the answer is %q", reply.Error.Message)
		case !reflect.DeepEqual(reply.Result, param):
			return fmt.Errorf("the result is %#v, not %#v", reply.Result, param)
		}
	}
	return nil
}

func checkConcurrency(ctx context.Context, t *tester) error {
	const calls = 50
	const seconds = 0.5
	begun := time.Now()
	problems := make(chan error, calls)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			param := map[string]any{"seconds": seconds, "number": int64(i)}
			reply, err := t.call(ctx, "conformance-sleep", param, nil)
			switch {
			case err != nil:
				problems <- err
			case reply.Result != int64(i):
				problems <- fmt.Errorf("the call %d has the answer %v", i, reply.Result)
			}
		})
	}
	all.Wait()
	close(problems)
	for err := range problems {
		return err
	}
	if took := time.Since(begun); took > calls*seconds*time.Second/5 {
		return fmt.Errorf("%d calls of %v s each took %s: they wait for each other. Declare the worker with calls: 1 if it must be so", calls, seconds, took.Round(time.Millisecond))
	}
	return nil
}

func checkPatch(ctx context.Context, t *tester) error {
	reply, err := t.call(ctx, "conformance-patch", nil, nil)
	if err != nil {
		return err
	}
	want := map[string]any{"metadata": map[string]any{"labels": map[string]any{"conformance": "passed"}}}
	if !reflect.DeepEqual(reply.Patch, want) {
		return fmt.Errorf("the patch is %v, not %v", reply.Patch, want)
	}
	return nil
}

// errorOf returns the error of an answer.
func errorOf(ctx context.Context, t *tester, id string) (*protocol.Error, error) {
	reply, err := t.call(ctx, id, nil, nil)
	if err != nil {
		return nil, err
	}
	if reply.Error == nil {
		return nil, errors.New("the answer has no error")
	}
	return reply.Error, nil
}

func checkTemporary(ctx context.Context, t *tester) error {
	e, err := errorOf(ctx, t, "conformance-temporary")
	if err == nil && (e.Permanent || e.Delay == nil || *e.Delay != 5) {
		return fmt.Errorf("the error is %+v: it must have a delay of 5", *e)
	}
	return err
}

func checkPermanent(ctx context.Context, t *tester) error {
	e, err := errorOf(ctx, t, "conformance-permanent")
	if err == nil && !e.Permanent {
		return fmt.Errorf("the error is %+v: it must be permanent", *e)
	}
	return err
}

func checkError(ctx context.Context, t *tester) error {
	e, err := errorOf(ctx, t, "conformance-error")
	if err == nil && (e.Permanent || e.Delay != nil) {
		return fmt.Errorf("the error is %+v: it must be neither permanent nor have a delay", *e)
	}
	return err
}

func checkLog(ctx context.Context, t *tester) error {
	var mu sync.Mutex
	var lines []string
	var events []protocol.PostedEvent
	reply, err := t.call(ctx, "conformance-log", nil, &protocol.Conversation{
		Log:  func(l protocol.LogLine) { mu.Lock(); defer mu.Unlock(); lines = append(lines, l.Message) },
		Post: func(e protocol.PostedEvent) { mu.Lock(); defer mu.Unlock(); events = append(events, e) },
	})
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	events = append(events, reply.Events...)
	if !slices.Contains(lines, "hello") {
		return fmt.Errorf("the lines are %q, without hello, before the answer", lines)
	}
	if !slices.ContainsFunc(events, func(e protocol.PostedEvent) bool { return e.Reason == "Hello" }) {
		return fmt.Errorf("the events are %+v, without one with the reason Hello", events)
	}
	return nil
}

func checkSubhandlers(ctx context.Context, t *tester) error {
	call := t.newCall("conformance-subhandlers", protocol.Change, nil)
	reply, err := t.worker.Call(ctx, call, &protocol.Conversation{})
	if err != nil {
		return err
	}
	err = t.callParts(ctx, call, reply.Subhandlers, &protocol.Conversation{Session: reply.Session})
	reply.Forget()
	return err
}

// callParts calls the sub-handlers a and b, which a call declares.
func (t *tester) callParts(ctx context.Context, call *protocol.Call, subhandlers json.RawMessage, during *protocol.Conversation) error {
	parts, err := document.ParseSubhandlers("the worker", "", subhandlers)
	if err != nil {
		return err
	}
	var ids []string
	for _, part := range parts {
		ids = append(ids, part.ID)
		each := t.newCall(call.Handler+"/"+part.ID, protocol.Change, part.Param)
		each.Parent = call.ID
		each.Function = part.Function
		if each.Function == "" {
			each.Function = call.Function + "/" + part.ID
		}
		answer, err := t.worker.Call(ctx, each, during)
		if err != nil {
			return err
		}
		if answer.Result != part.ID {
			return fmt.Errorf("the result of the sub-handler %s is %v, not its id", part.ID, answer.Result)
		}
	}
	if !slices.Equal(ids, []string{"a", "b"}) {
		return fmt.Errorf("the sub-handlers are %q, not a and b", ids)
	}
	return nil
}

func checkExecution(ctx context.Context, t *tester) error {
	call := t.newCall("conformance-execute", protocol.Change, nil)
	isExecuted := false
	reply, err := t.worker.Call(ctx, call, &protocol.Conversation{
		Execute: func(ctx context.Context, subhandlers json.RawMessage, session any) error {
			isExecuted = true
			return t.callParts(ctx, call, subhandlers, &protocol.Conversation{Session: session, Within: true})
		},
	})
	switch {
	case err != nil:
		return err
	case !isExecuted:
		return errors.New("it has answered without a message of the type execute")
	case reply.Error != nil:
		return fmt.Errorf("the error of the answer is %q", reply.Error.Message)
	case reply.Result != "executed":
		return fmt.Errorf("the result is %v, not executed", reply.Result)
	}
	return nil
}

func checkCancellation(ctx context.Context, t *tester) error {
	limited, cancel := context.WithTimeoutCause(ctx, 200*time.Millisecond, errors.New("the time is over"))
	defer cancel()
	begun := time.Now()
	_, err := t.call(limited, "conformance-wait", nil, nil)
	if took := time.Since(begun); took >= patience {
		return errors.New("it has not answered the canceled call, and was killed")
	}
	if err == nil {
		return errors.New("it has answered the canceled call with a success, which counts: the answer of an interrupted call is an error")
	}
	return nil
}

func checkUninterrupted(ctx context.Context, t *tester) error {
	const work = 500 * time.Millisecond
	limited, cancel := context.WithTimeoutCause(ctx, 200*time.Millisecond, errors.New("the time is over"))
	defer cancel()
	begun := time.Now()
	reply, err := t.call(limited, "conformance-finish", map[string]any{"seconds": work.Seconds()}, nil)
	switch {
	case time.Since(begun) < work:
		return errors.New("it has answered before its work has ended: the next attempt would overlap with it")
	case err != nil:
		return err
	case reply.Result != "finished":
		return fmt.Errorf("the result is %v, not finished", reply.Result)
	}
	return nil
}

func checkDaemon(ctx context.Context, t *tester) error {
	stopped := make(chan struct{})
	timer := time.AfterFunc(200*time.Millisecond, func() { close(stopped) })
	defer timer.Stop()
	reply, err := t.worker.Call(ctx, t.newCall("conformance-daemon", protocol.Daemon, nil), &protocol.Conversation{
		Stopped: stopped, StopReason: func() string { return "exiting" },
	})
	switch {
	case err != nil:
		return err
	case reply.Result != "stopped":
		return fmt.Errorf("the result is %v, not stopped", reply.Result)
	case ctx.Err() != nil:
		return errors.New("it has not ended in time")
	}
	return nil
}

func checkIndex(ctx context.Context, t *tester) error {
	value := map[string]any{"a": []any{int64(1), nil}}
	reply, err := t.worker.Call(ctx, t.newCall("conformance-index", protocol.Index, value), &protocol.Conversation{})
	if err != nil {
		return err
	}
	want := []protocol.KeyValue{{Key: []any{"default", "conformance"}, Value: value}}
	if !reflect.DeepEqual(reply.Index, want) {
		return fmt.Errorf("the index is %v, not %v", reply.Index, want)
	}
	return nil
}

func checkLarge(ctx context.Context, t *tester) error {
	const size = 1 << 20
	reply, err := t.call(ctx, "conformance-large", int64(size), nil)
	if err != nil {
		return err
	}
	text, _ := reply.Result.(string)
	if len(text) != size || strings.Trim(text, "x") != "" {
		return fmt.Errorf("the result is no text of %d times x, but has %d bytes", size, len(text))
	}
	return nil
}

// logTo returns a logger that writes the messages as lines.
func logTo(out io.Writer) logr.Logger {
	return funcr.New(func(_, line string) { _, _ = fmt.Fprintln(out, line) }, funcr.Options{})
}
