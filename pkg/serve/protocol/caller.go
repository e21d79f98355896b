package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Caller makes calls: by a program, a worker, or a service. When the context is done, the call ends soon,
// and its error is that of the context. Any other error is a TransportError, or says what is wrong with
// the answer.
type Caller interface {
	Call(ctx context.Context, call *Call, during *Conversation) (*Reply, error)
}

// Reply is the outcome of a call.
type Reply struct {
	*Answer
	// Session is another one after a restart of a worker, which then does not know the sub-handlers that
	// former answers have declared. Forget tells the worker that they are not called anymore.
	Session any
	Forget  func()
}

// Conversation is what happens during a call, besides its answer. All of its functions and channels can be
// nil.
type Conversation struct {
	// Session is that of the answer that has declared the sub-handler; nil for all other calls.
	Session any
	// Log writes a line to the log of the object.
	Log func(line LogLine)
	// Post posts an event about the object.
	Post func(PostedEvent)
	// Stopped is closed when a daemon or timer must end, and StopReason says why.
	Stopped    <-chan struct{}
	StopReason func() string
	// Changed has a value when what a daemon looks at has changed, and State returns that.
	Changed <-chan struct{}
	State   func() (object json.RawMessage, children []any)
	// Write writes an edit of a daemon.
	Write func(context.Context, *Edit) error
	// Execute calls sub-handlers of the open call, in the session of the worker. An error means that some have not ended.
	Execute func(ctx context.Context, subhandlers json.RawMessage, session any) error
	// Within is set for a sub-handler while the call of its handler is open, and has its place among the calls.
	Within bool
}

// LogLine is a line of the log. A line that is LogOnly becomes no event of the object.
type LogLine struct {
	LogOnly bool
	Level   string
	Message string
	Values  map[string]any
}

// TransportError means that there is no answer: the program, worker, or service has not started, died, or
// could not be reached. It is temporary.
type TransportError struct {
	Err   error
	Delay time.Duration
}

// Error returns the reason.
func (e *TransportError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *TransportError) Unwrap() error { return e.Err }

// Unavailablef returns a TransportError.
func Unavailablef(delay time.Duration, format string, values ...any) error {
	return &TransportError{Err: fmt.Errorf(format, values...), Delay: delay}
}
