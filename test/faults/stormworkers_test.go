package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/serve"
	"github.com/kopf-go/kopf/pkg/serve/document"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
	"github.com/kopf-go/kopf/pkg/serve/worker"
)

// In some storms, a worker has the handlers of changes, as in an operator of kopf serve. It dies, hangs, answers late or
// twice, and writes what is no message. A call without an answer is an attempt that has failed for now, whatever the
// handler has done.

// servedFile is the file of the operators. A worker that dies again and again comes back later and later.
const (
	servedFile = `kopf: v1
limits: {callTimeout: 2, stopTimeout: 0.5}
workers: {storm: {command: [none]}}
`
	mostDeaths = 2
)

// employ declares the handlers of a worker.
func (o *stormOperator) employ(r *kopf.Registry) {
	file := filepath.Join(o.storm.t.TempDir(), "operator.yaml")
	o.storm.try(os.WriteFile(file, []byte(servedFile), 0o600))
	program, err := serve.Load(context.Background(), serve.Options{
		Files: []string{file}, Logger: logr.Discard(), Start: func(*document.Worker) (*worker.Pipes, error) { return o.hire(), nil },
	})
	if err != nil {
		o.storm.t.Errorf("the worker of %s: %v", o.name, err)
		return
	}
	o.storm.t.Cleanup(func() { o.storm.try(program.Close()) })
	program.Declare(r)
}

// declarations returns the same handlers as declareChanges.
func (o *stormOperator) declarations() []map[string]any {
	const kex = "kopfexamples.v1.kopf.dev"
	var all []map[string]any
	declare := func(id string, with map[string]any, kinds ...string) {
		for _, kind := range kinds {
			one := map[string]any{kind: kex, "id": id}
			for word, value := range with {
				one[word] = value
			}
			all = append(all, one)
		}
	}
	on := map[string]any{"labels": map[string]any{"on": "yes"}}
	declare("field_a", map[string]any{"field": "spec.a"}, "change")
	declare("field_b", map[string]any{"field": "spec.b"}, "change")
	declare("all", nil, "create", "update")
	declare("parent", nil, "create", "update")
	declare("labeled", on, "create", "update")
	declare("resumed", nil, "resume", "update")
	declare("updated", nil, "update")
	declare("limited", map[string]any{"retries": o.attempts()}, "update")
	declare("timed", map[string]any{"timeout": longest.Seconds()}, "update")
	if !o.storm.free {
		declare("release", nil, "delete")
		declare("farewell", nil, "delete")
	}
	declare("mourner", on, "delete")
	declare("holder", map[string]any{"labels": on["labels"], "holdOnFailure": true}, "delete")
	return all
}

// stormWorker is one life of a worker.
type stormWorker struct {
	operator *stormOperator
	in       *io.PipeReader
	out      *io.PipeWriter
	exit     chan error
	end      sync.Once
	gone     chan struct{} // closed when it dies
	playing  sync.WaitGroup

	mu    sync.Mutex
	calls map[string]context.CancelFunc
	dead  bool
}

// hire begins a life. Without a worker, calls wait, so the operator works.
func (o *stormOperator) hire() *worker.Pipes {
	if !o.hired.CompareAndSwap(false, true) {
		o.busy.Add(-1)
	}
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	w := &stormWorker{operator: o, in: theirs, out: ours, exit: make(chan error, 1), gone: make(chan struct{}), calls: map[string]context.CancelFunc{}}
	go w.live()
	end := func() { w.die(errors.New("killed")) }
	return &worker.Pipes{In: in, Out: out, Stop: end, Kill: end, Wait: func() error { return <-w.exit }}
}

// live handles the messages of the operator.
func (w *stormWorker) live() {
	handlers, err := json.Marshal(w.operator.declarations())
	w.operator.storm.try(err)
	w.say(&protocol.Message{Type: protocol.Hello, Version: protocol.Version, Handlers: handlers})
	lines := bufio.NewScanner(w.in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := &protocol.Message{}
		w.operator.storm.try(json.Unmarshal(lines.Bytes(), m))
		w.mu.Lock()
		switch {
		case w.dead:
		case m.Type == protocol.CallNow:
			ctx, cancel := context.WithCancel(context.Background())
			w.calls[m.ID] = cancel
			w.playing.Add(1)
			go func() {
				defer w.playing.Done()
				defer cancel()
				w.play(ctx, m.Call)
			}()
		case m.Type == protocol.Cancel:
			if cancel := w.calls[m.ID]; cancel != nil {
				cancel()
			}
		}
		w.mu.Unlock()
	}
	w.die(nil)
}

// die ends the life. When the operator hears of it, nothing of it has effects anymore.
func (w *stormWorker) die(why error) {
	w.end.Do(func() {
		w.operator.busy.Add(1)
		w.mu.Lock()
		w.dead = true
		close(w.gone)
		for _, cancel := range w.calls {
			cancel()
		}
		w.mu.Unlock()
		_ = w.in.Close()
		_ = w.out.Close()
		go func() {
			w.playing.Wait()
			w.exit <- why
		}()
	})
}

// say writes a message, and reports whether the operator has read it.
func (w *stormWorker) say(m *protocol.Message) bool {
	line, err := m.Line()
	w.operator.storm.try(err)
	_, err = w.out.Write(line)
	return err == nil
}

// play makes a call.
func (w *stormWorker) play(ctx context.Context, call *protocol.Call) {
	o := w.operator
	defer o.works()()
	c := &remote{call: call}
	did := o.act(ctx, c.id(), c)
	if c.id() == "parent" {
		c.reply.Subhandlers = json.RawMessage(`[{"id": "x"}, {"id": "y"}, {"id": "field", "field": "spec.a"}]`)
	}
	dice := o.storm.dice("worker", call.Name, c.id(), call.UID, call.Retry, call.ID)
	times := 1
	switch what := dice.IntN(40); {
	case o.storm.calm.Load():
	case what == 0 && o.mayLoseWorkers():
		o.storm.note("the worker of %s dies in %s", o.name, c.id())
		go w.die(errors.New("it has crashed"))
		<-ctx.Done()
	case what == 1 && o.mayLoseWorkers():
		o.storm.note("the worker of %s hangs in %s", o.name, c.id())
		<-w.gone
	case what == 2 && o.mayLoseWorkers():
		o.storm.note("the worker of %s writes what is no message in %s", o.name, c.id())
		_, _ = io.WriteString(w.out, "Traceback (most recent call last):\n")
		<-w.gone
	case what == 3:
		times = 2
	case what <= 6:
		wait(ctx, upTo(dice, 200*time.Millisecond))
	}
	w.answer(c, did, times)
}

// mayLoseWorkers reports whether the worker may end once more.
func (o *stormOperator) mayLoseWorkers() bool { return o.deaths.Add(1) <= mostDeaths }

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// answer answers a call, and notes the end of its handler, if the operator gets the answer.
func (w *stormWorker) answer(c *remote, did conclusion, times int) {
	s := w.operator.storm.subject(c.Name())
	s.mu.Lock()
	defer s.mu.Unlock()
	if did.err != nil {
		c.reply.Error = failureOf(did.err)
	}
	text, err := json.Marshal(c.reply)
	w.operator.storm.try(err)
	delivered := true
	for range times {
		delivered = w.say(&protocol.Message{Type: protocol.Respond, ID: c.call.ID, Answer: text}) && delivered
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, c.call.ID)
	switch {
	case delivered && did.end != nil:
		s.end(w.operator, c.id(), c, *did.end)
	case !delivered && w.operator.isLast(c.id(), c):
		s.end(w.operator, c.id(), c, ending{reason: c.Reason()})
	}
}

func failureOf(err error) *protocol.Error {
	failure := &protocol.Error{Message: err.Error()}
	var temporary *kopf.TemporaryError
	var permanent *kopf.PermanentError
	switch {
	case errors.As(err, &temporary):
		failure.Delay = new(temporary.Delay.Seconds())
	case errors.As(err, &permanent):
		failure.Permanent = true
	}
	return failure
}

// remote is the change of a handler in a worker.
type remote struct {
	call  *protocol.Call
	reply protocol.Answer
}

// id returns the id by which the records have the handler.
func (c *remote) id() string {
	if c.call.Field != "" {
		return c.call.Handler + "/" + c.call.Field
	}
	return c.call.Handler
}

func (c *remote) Name() string        { return c.call.Name }
func (c *remote) UID() types.UID      { return types.UID(c.call.UID) }
func (c *remote) Reason() kopf.Reason { return kopf.Reason(c.call.Reason) }
func (c *remote) Retry() int          { return c.call.Retry }
func (c *remote) Old() object.Value   { return valueOf(c.call.Old) }
func (c *remote) New() object.Value   { return valueOf(c.call.New) }
func (c *remote) Body() *object.Body {
	raw, _ := valueOf(c.call.Object).Any().(map[string]any)
	return object.NewBody(raw)
}

func valueOf(data json.RawMessage) object.Value {
	var value any
	if len(data) > 0 && utiljson.Unmarshal(data, &value) != nil {
		return object.NewValue(fmt.Sprintf("unreadable: %s", data))
	}
	return object.NewValue(value)
}

func (c *remote) SetResult(value any) { c.reply.Result = value }

// enter appends to the journal in the spec. A JSON patch cannot add a list that may be there.
func (c *remote) enter(entry string) {
	c.reply.Operations = json.RawMessage(textOf([]any{map[string]any{"op": "add", "path": "/spec/" + journal + "/-", "value": entry}}))
}

func (c *remote) merge(fields map[string]any) { c.reply.Patch = fields }
