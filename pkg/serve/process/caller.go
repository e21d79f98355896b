package process

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/kopf-go/kopf/pkg/serve/protocol"
)

// ExitTemporary is the exit status of a temporary error, as in sysexits.h.
const ExitTemporary = 75

// TemporaryDelay is the delay after a temporary error that says none. It is that of Kopf.
const TemporaryDelay = 60 * time.Second

// Slots limit how many processes run at the same time.
type Slots chan struct{}

// Caller executes a program for each call.
type Caller struct {
	Starter *Starter
	Program Program
	// Output is the largest answer, in bytes.
	Output int
	// Calls and Daemons are the slots of processes.
	Calls, Daemons Slots
}

var _ protocol.Caller = (*Caller)(nil)

// Call executes the program: it reads the call from its standard input, and writes the answer to its standard
// output. Its standard error is the log of the object.
func (c *Caller) Call(ctx context.Context, call *protocol.Call, during *protocol.Conversation) (*protocol.Reply, error) {
	slots := c.Calls
	switch call.Kind {
	case protocol.Daemon:
		slots = c.Daemons
	case protocol.Index: // all other handlers wait for it, and it is called for one object at a time
		slots = make(Slots, 1)
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-during.Stopped:
		return &protocol.Reply{Answer: &protocol.Answer{}}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	input, err := json.Marshal(call)
	if err != nil {
		return nil, fmt.Errorf("the call cannot be encoded: %w", err)
	}
	program := c.Program
	program.Environment = append(append([]string{}, program.Environment...), variables(call)...)
	done, err := c.Starter.Execute(ctx, program, append(input, '\n'), c.Output, during)
	if err != nil {
		return nil, err
	}
	return outcome(done)
}

// outcome returns the outcome of a program that has ended.
func outcome(done *Execution) (*protocol.Reply, error) {
	answer, unreadable := protocol.ParseAnswer(done.Output)
	exit := done.Exit
	switch {
	case exit == nil && unreadable != nil:
		return nil, unreadable
	case exit == nil:
	case done.Stopped && exit.ExitCode() < 0: // it ends by the signal that asks it to
		return &protocol.Reply{Answer: &protocol.Answer{}}, nil
	default:
		if unreadable != nil {
			answer = &protocol.Answer{} // the exit status says enough
		}
		if answer.Error == nil {
			answer.Error = exitError(done)
		}
	}
	return &protocol.Reply{Answer: answer}, nil
}

// exitError returns the error for an exit status.
func exitError(done *Execution) *protocol.Error {
	e := &protocol.Error{Message: done.Failure()}
	if done.Exit.ExitCode() == ExitTemporary {
		e.Delay = new(TemporaryDelay.Seconds())
	}
	return e
}

// variables are what a program without a JSON parser needs.
func variables(call *protocol.Call) []string {
	return []string{
		"KOPF_CALL_HANDLER=" + call.Handler,
		"KOPF_CALL_KIND=" + string(call.Kind),
		"KOPF_CALL_REASON=" + call.Reason,
		"KOPF_CALL_NAMESPACE=" + call.Namespace,
		"KOPF_CALL_NAME=" + call.Name,
		"KOPF_CALL_UID=" + call.UID,
		"KOPF_CALL_RETRY=" + strconv.Itoa(call.Retry),
	}
}
