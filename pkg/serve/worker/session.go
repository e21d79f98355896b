package worker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/kopf-go/kopf/pkg/serve/protocol"
)

// session is one process of a worker, from its start to its end.
type session struct {
	worker *Worker
	pipes  *Pipes
	dead   chan struct{} // closed when no message comes anymore

	queue chan []byte // lines to write
	mu    sync.Mutex
	calls map[string]*open
	ended bool
	why   error         // it was killed
	gone  []string      // uids of objects that the worker does not know to be gone
	wake  chan struct{} // has a value if there are some
}

var _ protocol.Caller = (*session)(nil)

// open is a call that has no answer yet.
type open struct {
	during   *protocol.Conversation
	ctx      context.Context        // of the call, for its writes
	answer   chan answered          // gets one value
	requests chan *protocol.Message // what the worker wants done meanwhile
	done     chan struct{}          // closed when the answer is not awaited anymore
	lines    int                    // of its log
}

type answered struct {
	answer *protocol.Answer
	err    error
}

// maxLogLines is how many lines a call can log.
const maxLogLines = 10000

func newSession(w *Worker, pipes *Pipes) *session {
	return &session{worker: w, pipes: pipes, dead: make(chan struct{}), queue: make(chan []byte, 64), calls: map[string]*open{}, wake: make(chan struct{}, 1)}
}

// run runs the conversation until the process has ended, and returns why.
func (s *session) run() error {
	greeted := make(chan struct{})
	exited := make(chan error, 1)
	go func() {
		exited <- s.pipes.Wait()
		select { // the end of the process is that of its output, unless something else holds it
		case <-s.dead:
		case <-time.After(s.worker.options.StopTimeout):
		}
		_ = s.pipes.Out.Close()
	}()
	go s.write()
	go s.watch(greeted)
	s.send(&protocol.Message{Type: protocol.Start, Versions: []int{protocol.Version}})
	err := s.read(greeted)
	close(s.dead)
	if err != nil {
		s.kill(err)
	}
	s.pipes.Stop() // it may live without output
	ended := <-exited
	s.mu.Lock()
	why := s.why
	s.mu.Unlock()
	switch {
	case why != nil:
		return why
	case ended != nil:
		return ended
	default:
		return errors.New("it has exited")
	}
}

// watch kills a process that does not say hello in time, and stops one when the worker is closed.
func (s *session) watch(greeted <-chan struct{}) {
	late := time.NewTimer(s.worker.options.StartTimeout)
	defer late.Stop()
	for {
		select {
		case <-greeted:
			greeted = nil
			late.Stop()
		case <-late.C:
			s.kill(fmt.Errorf("it has not said hello within %s of its start: its first line must be a message of the type hello", s.worker.options.StartTimeout))
			return
		case <-s.worker.stop:
			s.pipes.Stop()
			return
		case <-s.dead:
			return
		}
	}
}

// kill kills the process because of what it has done. The first reason counts.
func (s *session) kill(why error) {
	s.mu.Lock()
	if s.why == nil {
		s.why = why
	}
	s.mu.Unlock()
	s.pipes.Kill()
}

// write writes the queued lines. At the end of the process, writing fails.
func (s *session) write() {
	for {
		var lines []byte
		select {
		case lines = <-s.queue:
		case <-s.wake:
			lines = s.goneLines()
		case <-s.dead:
			return
		}
		if _, err := s.pipes.In.Write(lines); err != nil {
			return // the reader notices the end, too
		}
	}
}

// forgetObject tells the worker that an object is gone, without waiting for a worker that does not read.
func (s *session) forgetObject(uid string) {
	s.mu.Lock()
	s.gone = append(s.gone, uid)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // the writer will look
	}
}

// goneLines returns the messages about objects that are gone.
func (s *session) goneLines() []byte {
	s.mu.Lock()
	gone := s.gone
	s.gone = nil
	s.mu.Unlock()
	var lines []byte
	for _, uid := range gone {
		line, err := (&protocol.Message{Type: protocol.Gone, UID: uid}).Line()
		if err == nil { // a text is always JSON
			lines = append(lines, line...)
		}
	}
	return lines
}

// send queues a message. It waits if the worker does not read, which the time limits of calls notice.
func (s *session) send(m *protocol.Message) {
	line, err := m.Line()
	if err != nil { // only a call has values that may not be JSON
		s.resolve(m.ID, answered{err: err})
		return
	}
	select {
	case s.queue <- line:
	case <-s.dead:
	}
}

// read reads messages until the output ends, or is no message.
func (s *session) read(greeted chan struct{}) error {
	lines := bufio.NewReaderSize(s.pipes.Out, 64<<10)
	for first := true; ; first = false {
		line, err := readLine(lines, s.worker.options.MaxLine)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		m, err := protocol.ParseMessage(line)
		switch {
		case err != nil:
			return fmt.Errorf("it has broken the protocol, so it is killed: %w. Standard output is for messages only, use standard error for all else", err)
		case first != (m.Type == protocol.Hello):
			return errors.New("it has broken the protocol, so it is killed: the first line must be hello, and no other")
		case first:
			if err := s.worker.greet(s, m); err != nil {
				return err
			}
			close(greeted)
		default:
			s.handle(m)
		}
	}
}

// readLine reads a line of limited length.
func readLine(lines *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := lines.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, fmt.Errorf("it has written a line of more than %d bytes, so it is killed", limit)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err != nil && len(bytes.TrimSpace(line)) > 0 && errors.Is(err, io.EOF) {
				return nil, errors.New("its last line has no end")
			}
			return line, err
		}
	}
}

// handle handles a message. Messages about calls that have ended are late, and ignored.
func (s *session) handle(m *protocol.Message) {
	s.mu.Lock()
	about := s.calls[m.ID]
	s.mu.Unlock()
	switch m.Type {
	case protocol.Log:
		s.log(about, m)
	case protocol.Post:
		if about != nil && about.during.Post != nil {
			about.during.Post(*m.Event)
		}
	case protocol.Write, protocol.Execute:
		if about != nil {
			go func() { // the goroutine of the call does it; the reader does not wait for it
				select {
				case about.requests <- m:
				case <-about.done:
				}
			}()
		}
	case protocol.Respond:
		answer, err := protocol.ParseAnswer(m.Answer)
		s.resolve(m.ID, answered{answer, err})
	}
}

// log logs a line of a call, or of the worker.
func (s *session) log(about *open, m *protocol.Message) {
	line := protocol.LogLine{Level: m.Level, Message: m.Message, Values: m.Values, LogOnly: m.LogOnly}
	if about == nil || about.during.Log == nil {
		s.logOutside(line)
		return
	}
	about.lines++ // only the reader counts
	switch {
	case about.lines <= maxLogLines:
		about.during.Log(line)
	case about.lines == maxLogLines+1:
		about.during.Log(protocol.LogLine{Level: "warning", Message: fmt.Sprintf("The call has logged %d lines. Further lines are left out.", maxLogLines)})
	}
}

// logOutside logs a line that is about no call.
func (s *session) logOutside(line protocol.LogLine) {
	logger := s.worker.options.Logger.WithValues("worker", s.worker.options.Name)
	var values []any
	for key, value := range line.Values {
		values = append(values, key, value)
	}
	switch line.Level {
	case "debug":
		logger.V(1).Info(line.Message, values...)
	case "error":
		logger.Error(nil, line.Message, values...)
	default:
		logger.Info(line.Message, values...)
	}
}

// store writes what a daemon wants written, and tells it the outcome.
func (s *session) store(about *open, m *protocol.Message) {
	written := &protocol.Message{Type: protocol.Written, ID: m.ID}
	switch {
	case about.during.Write == nil || m.Write == nil:
		written.Error = &protocol.Error{Message: "only a daemon can write before its end, and it says what", Permanent: true}
	default:
		if err := about.during.Write(about.ctx, m.Write); err != nil {
			written.Error = &protocol.Error{Message: err.Error()}
		} else if about.during.State != nil {
			written.Object, _ = about.during.State()
		}
	}
	s.send(written)
}

// execute calls sub-handlers of an open call, and tells the worker whether they have ended.
func (s *session) execute(about *open, m *protocol.Message) {
	executed := &protocol.Message{Type: protocol.Executed, ID: m.ID}
	if about.during.Execute == nil {
		executed.Error = &protocol.Error{Message: "only a handler of changes has sub-handlers", Permanent: true}
	} else if err := about.during.Execute(about.ctx, m.Subhandlers, s); err != nil {
		executed.Error = &protocol.Error{Message: err.Error()}
	}
	s.send(executed)
}

// resolve ends a call.
func (s *session) resolve(id string, with answered) {
	s.mu.Lock()
	about := s.calls[id]
	delete(s.calls, id)
	s.mu.Unlock()
	if about != nil {
		about.answer <- with
	}
}

// failAll ends all calls, and those that come late.
func (s *session) failAll(reason error) {
	s.mu.Lock()
	s.ended = true
	calls := s.calls
	s.calls = map[string]*open{}
	s.mu.Unlock()
	for _, about := range calls {
		about.answer <- answered{err: s.worker.diedError(reason)}
	}
}

// Call makes a call in this process, and waits for its answer.
func (s *session) Call(ctx context.Context, call *protocol.Call, during *protocol.Conversation) (*protocol.Reply, error) {
	if during.Session != nil && during.Session != s {
		return nil, protocol.Unavailablef(retryDelay, "the worker %s was restarted after it has declared this sub-handler", s.worker.options.Name)
	}
	about := &open{during: during, ctx: ctx, answer: make(chan answered, 1), requests: make(chan *protocol.Message), done: make(chan struct{})}
	defer close(about.done)
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return nil, s.worker.diedError(nil)
	}
	s.calls[call.ID] = about
	s.mu.Unlock()
	s.send(&protocol.Message{Type: protocol.CallNow, ID: call.ID, Call: call})
	got, err := s.wait(ctx, call.ID, about)
	if err == nil {
		err = got.err
	}
	if err != nil {
		return nil, err
	}
	return &protocol.Reply{Answer: got.answer, Session: s, Forget: func() {
		s.send(&protocol.Message{Type: protocol.Forget, ID: call.ID})
	}}, nil
}

// wait waits for the answer, and passes on meanwhile what the worker must know.
func (s *session) wait(ctx context.Context, id string, about *open) (answered, error) {
	stopped := about.during.Stopped
	for {
		select {
		case got := <-about.answer:
			return got, nil
		case <-stopped:
			stopped = nil
			s.sendStop(id, about)
		case m := <-about.requests:
			if m.Type == protocol.Write {
				s.store(about, m)
			} else {
				s.execute(about, m)
			}
		case <-about.during.Changed:
			object, children := about.during.State()
			s.send(&protocol.Message{Type: protocol.Changed, ID: id, Object: object, Children: children})
		case <-ctx.Done():
			if got := s.cancel(ctx, id, about, stopped); got.err == nil && got.answer.Error == nil {
				return got, nil // it was faster than the cancellation, or has ended its work nevertheless
			}
			return answered{}, context.Cause(ctx)
		}
	}
}

// sendStop tells the worker that a call must end, and why.
func (s *session) sendStop(id string, about *open) {
	reason := ""
	if about.during.StopReason != nil {
		reason = about.during.StopReason()
	}
	s.send(&protocol.Message{Type: protocol.Stop, ID: id, Reason: reason})
}

// cancel asks the worker to end a call, and waits for its answer. It kills a worker that does not answer: the call
// would overlap with its next attempt. If the call is also stopped, and the worker does not know it, it hears that first.
func (s *session) cancel(ctx context.Context, id string, about *open, stopped <-chan struct{}) answered {
	limit := time.NewTimer(s.worker.options.StopTimeout)
	defer limit.Stop()
	canceled := make(chan struct{})
	go func() { // a worker that does not read blocks all senders
		select {
		case <-stopped:
			s.sendStop(id, about)
		default:
		}
		s.send(&protocol.Message{Type: protocol.Cancel, ID: id, Reason: context.Cause(ctx).Error()})
		close(canceled)
	}()
	select {
	case got := <-about.answer:
		<-canceled
		return got
	case <-limit.C:
	}
	s.kill(fmt.Errorf("it has not answered a canceled call within %s, so it is killed", s.worker.options.StopTimeout))
	got := <-about.answer
	<-canceled
	return got
}
