package worker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"

	"github.com/kopf-go/kopf/pkg/serve/protocol"
	"github.com/kopf-go/kopf/pkg/serve/worker"
)

// puppet is a worker that the test moves. Its time is virtual.
type puppet struct {
	t      *testing.T
	in     *bufio.Scanner
	out    io.WriteCloser
	killed chan struct{}
	exit   chan error
	once   sync.Once
}

// receive returns the next message of the operator, after the one that begins the conversation.
func (p *puppet) receive() *protocol.Message {
	p.t.Helper()
	for p.in.Scan() {
		m := &protocol.Message{}
		if err := json.Unmarshal(p.in.Bytes(), m); err != nil {
			p.t.Errorf("the operator has sent %q: %v", p.in.Text(), err)
		}
		if m.Type != protocol.Start {
			return m
		}
	}
	return &protocol.Message{}
}

func (p *puppet) say(line string) { _, _ = io.WriteString(p.out, line+"\n") }

// answer answers a call.
func (p *puppet) answer(id, answer string) {
	p.say(fmt.Sprintf(`{"type": "answer", "id": %q, "answer": %s}`, id, answer))
}

// die ends the worker.
func (p *puppet) die(err error) {
	p.once.Do(func() {
		p.exit <- err
		_ = p.out.Close()
	})
}

const hello = `{"type": "hello", "version": 1}`

// newWorker returns a worker whose processes are the functions, one after the other.
func newWorker(t *testing.T, lives ...func(*puppet)) *worker.Worker {
	t.Helper()
	starts := 0
	w := worker.New(worker.Options{
		Name: "puppet", Calls: 2, StartTimeout: 10 * time.Second, StopTimeout: 5 * time.Second, MaxLine: 1000, Logger: testr.New(t),
		Start: func() (*worker.Pipes, error) {
			if starts == len(lives) {
				return nil, errors.New("no more lives")
			}
			live := lives[starts]
			starts++
			theirInput, in := io.Pipe()
			out, theirOutput := io.Pipe()
			p := &puppet{t: t, in: bufio.NewScanner(theirInput), out: theirOutput, killed: make(chan struct{}), exit: make(chan error, 1)}
			go live(p)
			end := func() {
				_ = theirInput.Close()
				p.die(errors.New("signal: killed"))
			}
			return &worker.Pipes{In: in, Out: out, Stop: end, Kill: end, Wait: func() error { return <-p.exit }}, nil
		},
	})
	t.Cleanup(w.Close)
	return w
}

// run runs a test in virtual time.
func run(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func call(t *testing.T, w *worker.Worker) (*protocol.Reply, error) {
	t.Helper()
	return w.Call(t.Context(), &protocol.Call{Handler: "fn"}, &protocol.Conversation{})
}

// echo answers all calls with their handlers.
func echo(p *puppet) {
	p.say(hello)
	for {
		switch m := p.receive(); m.Type {
		case protocol.CallNow:
			p.answer(m.ID, fmt.Sprintf(`{"result": %q}`, m.Call.Handler))
		case "":
			return
		}
	}
}

func TestCallsAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, echo)
		for range 3 {
			if reply, err := call(t, w); err != nil || reply.Result != "fn" {
				t.Errorf("got %+v, %v", reply, err)
			}
		}
	})
}

// Calls are answered in any order, and no more of them are open than the worker wants. Daemons do not count.
func TestManyCallsAreOpenAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := 0
		w := newWorker(t, func(p *puppet) {
			p.say(hello)
			var waiting []string
			for range 2 {
				waiting = append(waiting, p.receive().ID, p.receive().ID)
				most = max(most, len(waiting))
				for len(waiting) > 0 {
					last := len(waiting) - 1
					p.answer(waiting[last], fmt.Sprintf(`{"result": %q}`, waiting[last]))
					waiting = waiting[:last]
				}
			}
			daemon := p.receive()
			p.answer(p.receive().ID, `{}`)
			p.answer(daemon.ID, `{}`)
			p.receive()
		})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				c := &protocol.Call{}
				if reply, err := w.Call(t.Context(), c, &protocol.Conversation{}); err != nil || reply.Result != c.ID {
					t.Errorf("got %+v, %v for the call %s", reply, err, c.ID)
				}
			})
		}
		all.Wait()
		if most != 2 {
			t.Errorf("%d calls were open, want 2", most)
		}
		all.Go(func() {
			if _, err := w.Call(t.Context(), &protocol.Call{Kind: protocol.Daemon}, &protocol.Conversation{}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if _, err := call(t, w); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
}

// A worker that ends, or that breaks the protocol, leaves its calls to their next attempts, and is started again.
func TestABrokenWorkerIsStartedAgain(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, test := range map[string]struct {
		breaks func(p *puppet, id string)
		want   string
	}{
		"it dies":                  {func(p *puppet, _ string) { p.die(errors.New("exit status 1")) }, "exit status 1"},
		"it exits":                 {func(p *puppet, _ string) { p.die(nil) }, "it has exited"},
		"it prints":                {func(p *puppet, _ string) { p.say("debugging") }, "Standard output is for messages only, use standard error for all else"},
		"it answers half":          {func(p *puppet, _ string) { _, _ = io.WriteString(p.out, `{"type": "ans`); p.die(nil) }, "its last line has no end"},
		"it floods":                {func(p *puppet, _ string) { p.say(long) }, "it has written a line of more than 1000 bytes, so it is killed"},
		"it says hello twice":      {func(p *puppet, _ string) { p.say(hello) }, "the first line must be hello, and no other"},
		"it invents a message":     {func(p *puppet, id string) { p.say(`{"type": "anwser", "id": "` + id + `"}`) }, `the type "anwser" of the message is unknown`},
		"it mistypes a word":       {func(p *puppet, id string) { p.say(`{"type": "answer", "ID": "` + id + `", "anwser": {}}`) }, "unknown word"},
		"it answers without an id": {func(p *puppet, _ string) { p.say(`{"type": "answer", "answer": {}}`) }, "the answer has no id"},
	} {
		run(t, name, func(t *testing.T) {
			w := newWorker(t, func(p *puppet) {
				p.say(hello)
				test.breaks(p, p.receive().ID)
			}, echo)
			_, err := call(t, w)
			var unavailable *protocol.TransportError
			if !errors.As(err, &unavailable) || unavailable.Delay <= 0 || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			begun := time.Now()
			if reply, err := call(t, w); err != nil || reply.Result != "fn" {
				t.Errorf("got %+v, %v after the restart", reply, err)
			}
			if pause := time.Since(begun); pause <= 0 || pause > 2*time.Second {
				t.Errorf("the worker was started again after %s", pause)
			}
		})
	}
}

// An answer that cannot be used fails its call alone.
func TestAWrongAnswerFailsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, func(p *puppet) {
			p.say(hello)
			p.answer(p.receive().ID, `{"error": {"message": "a", "delay": 1, "permanent": true}}`)
			p.answer(p.receive().ID, `{"resutl": 1}`)
			p.answer(p.receive().ID, `{}`)
			p.receive()
		})
		for _, want := range []string{"error has a delay, and is permanent", "unknown word resutl: did you mean result?"} {
			if _, err := call(t, w); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		if _, err := call(t, w); err != nil {
			t.Error(err)
		}
	})
}

// A worker that keeps memos hears which objects are gone, also if it does not read for a while.
func TestAWorkerHearsWhichObjectsAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 1000
		gone := make(chan int)
		w := newWorker(t, func(p *puppet) {
			p.say(`{"type": "hello", "version": 1, "memos": true}`)
			time.Sleep(time.Minute)
			count := 0
			for m := p.receive(); m.Type == protocol.Gone && m.UID == fmt.Sprint(count); m = p.receive() {
				count++
				if count == objects {
					break
				}
			}
			gone <- count
			p.receive()
		})
		w.Gone("nothing runs yet")
		if _, err := w.Handlers(t.Context()); err != nil || !w.KeepsMemos() {
			t.Errorf("the worker keeps memos: %t, %v", w.KeepsMemos(), err)
		}
		begun := time.Now()
		for i := range objects {
			w.Gone(fmt.Sprint(i))
		}
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("the operator has waited for %s", waited)
		}
		if count := <-gone; count != objects {
			t.Errorf("got %d messages in their order, want %d", count, objects)
		}
	})
}

// Answers that come late, or twice, change nothing.
func TestLateAnswersAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, func(p *puppet) {
			p.say(hello)
			first := p.receive().ID
			p.answer(first, `{"result": 1}`)
			p.answer(first, `{"result": 2}`)
			second := p.receive().ID
			p.answer(first, `{"result": 3}`)
			p.answer("unknown", `{"result": 4}`)
			p.answer(second, `{"result": 5}`)
			p.receive()
		})
		for _, want := range []int64{1, 5} {
			if reply, err := call(t, w); err != nil || reply.Result != want {
				t.Errorf("got %+v, %v, want %d", reply, err, want)
			}
		}
	})
}

func TestACanceledCallIsToldSo(t *testing.T) {
	why := errors.New("the test is over")
	run(t, "it obeys", func(t *testing.T) {
		w := newWorker(t, func(p *puppet) {
			p.say(hello)
			opened := p.receive().ID
			if m := p.receive(); m.Type != protocol.Cancel || m.ID != opened || m.Reason != why.Error() {
				t.Errorf("got %+v", m)
			}
			p.answer(opened, `{"error": {"message": "interrupted"}}`)
			p.answer(p.receive().ID, `{}`)
			p.receive()
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, why)
		defer cancel()
		if _, err := w.Call(ctx, &protocol.Call{}, &protocol.Conversation{}); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		if _, err := call(t, w); err != nil {
			t.Error(err)
		}
	})
	run(t, "it has ended its work nevertheless", func(t *testing.T) {
		w := newWorker(t, func(p *puppet) {
			p.say(hello)
			opened := p.receive().ID
			p.receive()
			p.answer(opened, `{"result": "done"}`)
			p.receive()
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, why)
		defer cancel()
		if reply, err := w.Call(ctx, &protocol.Call{}, &protocol.Conversation{}); err != nil || reply.Result != "done" {
			t.Errorf("got %+v, %v", reply, err)
		}
	})
	// It would overlap with the next attempt.
	for name, hang := range map[string]func(*puppet){
		"it hangs":         func(p *puppet) { p.receive(); p.receive() },
		"it does not read": func(p *puppet) { <-p.killed },
	} {
		run(t, name, func(t *testing.T) {
			w := newWorker(t, func(p *puppet) {
				go func() { <-t.Context().Done(); close(p.killed) }()
				p.say(hello)
				hang(p)
			}, echo)
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, why)
			defer cancel()
			begun := time.Now()
			if _, err := w.Call(ctx, &protocol.Call{}, &protocol.Conversation{}); !errors.Is(err, why) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(begun); took != time.Minute+5*time.Second {
				t.Errorf("the call has ended after %s", took)
			}
			if reply, err := call(t, w); err != nil || reply.Result != "fn" {
				t.Errorf("got %+v, %v after the restart", reply, err)
			}
		})
	}
}

func TestAWorkerMustSayHello(t *testing.T) {
	for name, test := range map[string]struct {
		begin func(*puppet)
		want  string
	}{
		"it is silent":              {func(p *puppet) { p.receive() }, "it has not said hello within 10s of its start"},
		"it speaks another version": {func(p *puppet) { p.say(`{"type": "hello", "version": 2}`) }, "the worker speaks version 2 of the protocol, and this operator version 1"},
		"it begins with a log":      {func(p *puppet) { p.say(`{"type": "log", "message": "begun"}`) }, "the first line must be hello"},
		"it exits":                  {func(p *puppet) { p.die(errors.New("exit status 2")) }, "exit status 2"},
	} {
		run(t, name, func(t *testing.T) {
			if _, err := newWorker(t, test.begin).Handlers(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// The operator has asked once: a worker that says something else later would not be called for it.
func TestAWorkerMustDeclareTheSameAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		declare := func(handlers string) func(*puppet) {
			return func(p *puppet) {
				p.say(`{"type": "hello", "version": 1, "handlers": ` + handlers + `}`)
				p.receive()
				p.die(nil)
			}
		}
		w := newWorker(t, declare(`[{"create": "a", "id": "b"}]`), declare(`[{"create": "a", "id": "c"}]`), declare(`[{"id": "b", "create": "a", "place": "handlers.py:5"}]`))
		if handlers, err := w.Handlers(t.Context()); err != nil || string(handlers) != `[{"create": "a", "id": "b"}]` {
			t.Errorf("got %s, %v", handlers, err)
		}
		if _, err := call(t, w); err == nil {
			t.Error("the first worker has answered")
		}
		begun := time.Now()
		if _, err := call(t, w); err == nil || !strings.Contains(err.Error(), "has ended during the call") {
			t.Errorf("got %v, want the death of the third worker", err)
		}
		if time.Since(begun) < 2*time.Second {
			t.Errorf("the second worker was called")
		}
	})
}

// A worker that cannot be started makes calls wait, but not without end.
func TestCallsWaitForTheNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := w.Call(ctx, &protocol.Call{}, &protocol.Conversation{})
		var unavailable *protocol.TransportError
		if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "the worker puppet cannot be started: no more lives") {
			t.Errorf("got %v", err)
		}
	})
}

// A daemon hears that it must end and what has changed, and writes before it ends.
func TestADaemonHasAConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, func(p *puppet) {
			p.say(hello)
			id := p.receive().ID
			p.say(`{"type": "log", "id": "` + id + `", "level": "warning", "message": "begun", "values": {"a": 1}}`)
			p.say(`{"type": "event", "id": "` + id + `", "event": {"reason": "Begun", "message": "the daemon runs"}}`)
			p.say(`{"type": "write", "id": "` + id + `", "write": {"patch": {"status": {"a": 1}}}}`)
			if m := p.receive(); m.Type != protocol.Written || m.Error != nil || string(m.Object) != `{"a":1}` {
				t.Errorf("got %+v after the write", m)
			}
			p.say(`{"type": "write", "id": "` + id + `", "write": {"patch": {"status": {"b": 1}}}}`)
			if m := p.receive(); m.Type != protocol.Written || m.Error == nil || m.Error.Message != "refused" {
				t.Errorf("got %+v after a write that is refused", m)
			}
			if m := p.receive(); m.Type != protocol.Changed || m.ID != id || string(m.Object) != `{"a":1}` {
				t.Errorf("got %+v after a change", m)
			}
			if m := p.receive(); m.Type != protocol.Stop || m.ID != id || m.Reason != "deleted" {
				t.Errorf("got %+v at the end", m)
			}
			p.answer(id, `{"result": "bye"}`)
			p.receive()
		})
		stopped, changed := make(chan struct{}), make(chan struct{}, 1)
		var lines []protocol.LogLine
		var events []protocol.PostedEvent
		during := &protocol.Conversation{
			Log: func(l protocol.LogLine) { lines = append(lines, l) }, Post: func(e protocol.PostedEvent) { events = append(events, e) },
			Stopped: stopped, StopReason: func() string { return "deleted" }, Changed: changed,
			State: func() (json.RawMessage, []any) { return json.RawMessage(`{"a":1}`), nil },
			Write: func(_ context.Context, e *protocol.Edit) error {
				if status, _ := e.Patch["status"].(map[string]any); status["b"] != nil {
					return errors.New("refused")
				}
				return nil
			},
		}
		time.AfterFunc(time.Minute, func() { changed <- struct{}{} })
		time.AfterFunc(time.Hour, func() { close(stopped) })
		reply, err := w.Call(t.Context(), &protocol.Call{Kind: protocol.Daemon}, during)
		if err != nil || reply.Result != "bye" {
			t.Errorf("got %+v, %v", reply, err)
		}
		if len(lines) != 1 || lines[0].Message != "begun" || lines[0].Level != "warning" || len(events) != 1 || events[0].Reason != "Begun" {
			t.Errorf("got the lines %+v and the events %+v", lines, events)
		}
	})
}

// A daemon that is canceled at once hears before why it must end.
func TestADaemonHearsWhyItIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 20
		w := newWorker(t, func(p *puppet) {
			p.say(hello)
			for range calls {
				id := p.receive().ID
				if m := p.receive(); m.Type != protocol.Stop || m.ID != id || m.Reason != "deleted" {
					t.Errorf("got %+v before the cancellation", m)
				}
				if m := p.receive(); m.Type != protocol.Cancel || m.ID != id {
					t.Errorf("got %+v, not the cancellation", m)
				}
				p.answer(id, `{"result": "bye"}`)
			}
			p.receive()
		})
		for range calls {
			ctx, cancel := context.WithCancel(t.Context())
			stopped := make(chan struct{})
			time.AfterFunc(time.Minute, func() {
				close(stopped)
				cancel()
			})
			during := &protocol.Conversation{Stopped: stopped, StopReason: func() string { return "deleted" }}
			if reply, err := w.Call(ctx, &protocol.Call{Kind: protocol.Daemon}, during); err != nil || reply.Result != "bye" {
				t.Errorf("got %+v, %v", reply, err)
			}
		}
	})
}

// A worker that asks for what its call does not have is told so.
func TestOnlyHandlersOfChangesHaveSubhandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, func(p *puppet) {
			p.say(hello)
			id := p.receive().ID
			p.say(`{"type": "execute", "id": "` + id + `", "subhandlers": [{"id": "a"}]}`)
			if m := p.receive(); m.Type != protocol.Executed || m.ID != id || m.Error == nil || !m.Error.Permanent {
				t.Errorf("got %+v", m)
			}
			p.answer(id, `{}`)
			p.receive()
		})
		if _, err := call(t, w); err != nil {
			t.Error(err)
		}
	})
}

// A sub-handler is not called in a worker that does not know it.
func TestSubhandlersAreForgottenByARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forgotten := make(chan string, 1)
		w := newWorker(t, func(p *puppet) {
			p.say(hello)
			p.answer(p.receive().ID, `{"subhandlers": [{"id": "a"}]}`)
			p.answer(p.receive().ID, `{}`)
			forgotten <- p.receive().ID
			p.die(nil)
		}, echo)
		parent, err := call(t, w)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Call(t.Context(), &protocol.Call{Parent: "1"}, &protocol.Conversation{Session: parent.Session}); err != nil {
			t.Error(err)
		}
		parent.Forget()
		if id := <-forgotten; id != "1" {
			t.Errorf("the call %s is forgotten, want 1", id)
		}
		time.Sleep(time.Minute)
		_, err = w.Call(t.Context(), &protocol.Call{Parent: "1"}, &protocol.Conversation{Session: parent.Session})
		if err == nil || !strings.Contains(err.Error(), "was restarted after it has declared this sub-handler") {
			t.Errorf("got %v", err)
		}
	})
}
