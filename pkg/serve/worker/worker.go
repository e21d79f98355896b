package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
)

// Pipes are the ends of a worker that runs.
type Pipes struct {
	// In gets messages, and Out has those of the worker.
	In  io.WriteCloser
	Out io.ReadCloser
	// Stop asks the worker to end, and Kill ends it.
	Stop, Kill func()
	// Wait waits for the end.
	Wait func() error
}

// Options describe a worker.
type Options struct {
	Name string
	// Start starts it.
	Start func() (*Pipes, error)
	// Begin makes the calls that each process must answer before all others; nil for none. If it returns an error,
	// the process is killed, and started again. The context ends with the process.
	Begin func(ctx context.Context, process protocol.Caller) error
	// Calls is how many calls it handles at the same time, besides daemons.
	Calls int
	// StartTimeout limits the time until it says hello, and StopTimeout the time until it answers a
	// canceled call.
	StartTimeout, StopTimeout time.Duration
	// MaxLine is the longest message, in bytes.
	MaxLine int
	Logger  logr.Logger
}

// The pauses before a worker is started again. They grow until it has run for as long as the longest.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// retryDelay is the delay of calls that a worker has left without an answer.
const retryDelay = 5 * time.Second

// Worker is a worker that is started again and again, until Close.
type Worker struct {
	options Options
	slots   chan struct{}
	ids     atomic.Uint64
	backoff backoff.Backoff

	stop    chan struct{} // closed by Close
	stopped chan struct{} // closed when the last process has ended

	mu       sync.Mutex
	begun    bool
	closed   bool
	session  *session      // the process that says hello and answers, or nil
	changed  chan struct{} // closed when the session or the failure changes
	failure  error         // of the last start
	handlers json.RawMessage
	known    bool // the handlers are known
	memos    bool // the worker wants to know which objects are gone
}

var _ protocol.Caller = (*Worker)(nil)

// New returns a worker. It is started by its first call.
func New(options Options) *Worker {
	return &Worker{
		options: options, slots: make(chan struct{}, max(1, options.Calls)), backoff: backoff.Exponential(firstPause, longestPause),
		stop: make(chan struct{}), stopped: make(chan struct{}), changed: make(chan struct{}),
	}
}

// Close ends the worker, and waits for its end.
func (w *Worker) Close() {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed = true
	close(w.stop)
	begun := w.begun
	w.mu.Unlock()
	if begun {
		<-w.stopped
	}
}

// Handlers starts the worker, and returns the handlers that it declares. It returns the error of the first start.
func (w *Worker) Handlers(ctx context.Context) (json.RawMessage, error) {
	if _, err := w.await(ctx, true); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handlers, nil
}

// await returns the process that answers. It waits for the next one, or, if asked, returns why the last one
// could not start.
func (w *Worker) await(ctx context.Context, failing bool) (*session, error) {
	for {
		w.mu.Lock()
		if !w.begun && !w.closed {
			w.begun = true
			go w.run()
		}
		running, failure, changed, closed := w.session, w.failure, w.changed, w.closed
		w.mu.Unlock()
		switch {
		case closed:
			return nil, protocol.Unavailablef(retryDelay, "the worker %s has ended with the operator", w.options.Name)
		case running != nil:
			return running, nil
		case failing && failure != nil:
			return nil, failure
		}
		select {
		case <-changed:
		case <-w.stop:
		case <-ctx.Done():
			if failure != nil {
				return nil, protocol.Unavailablef(retryDelay, "the worker %s cannot be started: %w", w.options.Name, failure)
			}
			return nil, context.Cause(ctx)
		}
	}
}

// set changes what await returns.
func (w *Worker) set(running *session, failure error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.become(running, failure)
}

// become is set for those that have the lock.
func (w *Worker) become(running *session, failure error) {
	w.session = running
	w.failure = failure
	close(w.changed)
	w.changed = make(chan struct{})
}

// run keeps the worker running.
func (w *Worker) run() {
	defer close(w.stopped)
	for failures := 0; ; failures++ {
		begun := time.Now()
		err := w.runOnce()
		if time.Since(begun) > longestPause {
			failures = 0
		}
		select {
		case <-w.stop:
			return
		default:
		}
		pause := w.backoff.Delay(failures)
		w.options.Logger.Error(err, "The worker has ended, and is started again.", "worker", w.options.Name, "pause", pause.Round(time.Millisecond).String())
		w.set(nil, err)
		select {
		case <-time.After(pause):
		case <-w.stop:
			return
		}
	}
}

// runOnce runs one process until its end, and returns why it has ended.
func (w *Worker) runOnce() error {
	pipes, err := w.options.Start()
	if err != nil {
		return err
	}
	s := newSession(w, pipes)
	err = s.run()
	w.set(nil, err)
	s.failAll(err)
	return err
}

// greet checks the hello of a process, and lets it begin.
func (w *Worker) greet(s *session, hello *protocol.Message) error {
	w.mu.Lock()
	known, former := w.known, w.handlers
	w.memos = hello.Memos
	if !known {
		w.known = true
		w.handlers = hello.Handlers
	}
	w.mu.Unlock()
	if known && withoutPlaces(former) != withoutPlaces(hello.Handlers) {
		return errors.New("it declares other handlers than at its first start: restart the operator, which has asked for them once")
	}
	if w.options.Begin == nil {
		w.admit(s)
		return nil
	}
	go w.begin(s) // the reader is needed for its calls
	return nil
}

// begin makes the first calls of a process, and admits all others if they succeed.
func (w *Worker) begin(s *session) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.dead:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := w.options.Begin(ctx, s); err != nil {
		s.kill(err)
		return
	}
	w.admit(s)
}

// admit makes a process the one that answers, unless it has ended meanwhile.
func (w *Worker) admit(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-s.dead: // before the end of the process is set
	default:
		w.become(s, nil)
	}
}

// withoutPlaces returns declarations in one form, so that they can be compared. Their places change with a comment.
func withoutPlaces(handlers json.RawMessage) string {
	var all []map[string]any
	if json.Unmarshal(handlers, &all) != nil {
		return string(handlers)
	}
	for _, each := range all {
		delete(each, "place")
	}
	same, err := json.Marshal(all)
	if err != nil {
		return string(handlers)
	}
	return string(same)
}

// KeepsMemos reports whether the worker wants to know which objects are gone.
func (w *Worker) KeepsMemos() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.memos
}

// Gone tells the worker that an object is gone. It does not wait. A process that does not run has no memos.
func (w *Worker) Gone(uid string) {
	w.mu.Lock()
	running := w.session
	w.mu.Unlock()
	if running != nil {
		running.forgetObject(uid)
	}
}

// Call makes a call. A call without an id gets one.
func (w *Worker) Call(ctx context.Context, call *protocol.Call, during *protocol.Conversation) (*protocol.Reply, error) {
	// A daemon would keep its slot as long as its object exists. All other handlers wait for an index, and so it must not wait for them.
	isLimited := call.Kind != protocol.Daemon && call.Kind != protocol.Index
	if isLimited && !during.Within {
		select {
		case w.slots <- struct{}{}:
			defer func() { <-w.slots }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	s, err := w.await(ctx, false)
	if err != nil {
		return nil, err
	}
	if call.ID == "" {
		call.ID = strconv.FormatUint(w.ids.Add(1), 10)
	}
	return s.Call(ctx, call, during)
}

// diedError returns the error of a call that a worker has left without an answer.
func (w *Worker) diedError(reason error) error {
	return protocol.Unavailablef(retryDelay, "the worker %s has ended during the call: %w", w.options.Name, orEnded(reason))
}

func orEnded(err error) error {
	if err == nil {
		return errors.New("it has exited")
	}
	return err
}
