package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/kopf-go/kopf/pkg/serve/protocol"
)

// Execution is a program that has ended.
type Execution struct {
	Output []byte
	// Exit is nil after a success.
	Exit *exec.ExitError
	// Stopped reports whether the program was asked to end, because the conversation was stopped.
	Stopped bool
	last    string // line of standard error
}

// Failure says how the program has failed: exit status 3, or signal: killed, with the last line of its standard error.
func (e *Execution) Failure() string {
	message := e.Exit.Error()
	if e.last != "" {
		message += ": " + e.last
	}
	return message
}

// Execute executes a program until its end. Its standard error becomes the log. It is asked to end when the conversation is
// stopped or the context is done, and killed if its output is larger than the limit.
func (s *Starter) Execute(ctx context.Context, program Program, input []byte, limit int, during *protocol.Conversation) (*Execution, error) {
	lines := &Lines{Limit: MaxLines}
	if during.Log != nil {
		lines.Line = func(text string) { during.Log(protocol.LogLine{LogOnly: true, Message: text}) }
	}
	overflow := make(chan struct{})
	output := &bounded{limit: limit, overflow: func() { close(overflow) }}
	running, err := s.Start(program, bytes.NewReader(input), output, lines)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		stopped := during.Stopped
		for {
			select {
			case <-stopped:
				running.Stop()
				stopped = nil
			case <-ctx.Done():
				running.Stop()
				return
			case <-overflow:
				running.Kill()
				return
			case <-done:
				return
			}
		}
	}()
	err = running.Wait()
	close(done)
	if dropped := lines.Close(); dropped > 0 && during.Log != nil {
		during.Log(protocol.LogLine{LogOnly: true, Message: fmt.Sprintf("%d further lines of standard error are left out.", dropped)})
	}
	ended := &Execution{Output: output.data, Stopped: isClosed(during.Stopped), last: lines.Last()}
	switch {
	case output.full:
		return nil, fmt.Errorf("the program was killed, because its output has more than %d bytes", limit)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && !errors.As(err, &ended.Exit):
		return nil, fmt.Errorf("the program has failed: %w", err)
	}
	return ended, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
