package protocol

import (
	"encoding/json"
	"fmt"
)

// Message is a line between the operator and a worker.
type Message struct {
	Type Type `json:"type"`
	// ID is that of the call.
	ID string `json:"id,omitempty"`

	Versions []int           `json:"versions,omitempty"` // start: those that the operator speaks
	Version  int             `json:"version,omitempty"`  // hello: the one that the worker has chosen
	Handlers json.RawMessage `json:"handlers,omitempty"` // hello: declarations, as in a file, each with a place
	Memos    bool            `json:"memos,omitempty"`    // hello: the worker keeps something for each object
	UID      string          `json:"uid,omitempty"`      // gone

	Call   *Call           `json:"call,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`

	Reason   string          `json:"reason,omitempty"`   // stop, cancel
	Object   json.RawMessage `json:"object,omitempty"`   // changed, written
	Children []any           `json:"children,omitempty"` // changed
	Error    *Error          `json:"error,omitempty"`    // written, executed

	Write *Edit `json:"write,omitempty"`

	Subhandlers json.RawMessage `json:"subhandlers,omitempty"` // execute: as in an answer

	Level   string         `json:"level,omitempty"`   // log
	Message string         `json:"message,omitempty"` // log
	Values  map[string]any `json:"values,omitempty"`  // log
	LogOnly bool           `json:"logOnly,omitempty"` // log: it becomes no event
	Event   *PostedEvent   `json:"event,omitempty"`
}

// Type is the type of a message.
type Type string

// The messages of the operator.
const (
	Start    Type = "start"    // the first line, with the versions
	CallNow  Type = "call"     // a call
	Stop     Type = "stop"     // a daemon or timer must end soon, with the reason
	Cancel   Type = "cancel"   // the answer of a call is not awaited for long anymore
	Changed  Type = "changed"  // what a daemon looks at has changed
	Written  Type = "written"  // a write of a daemon is stored, or has failed
	Executed Type = "executed" // the sub-handlers of a call have ended, or not yet
	Forget   Type = "forget"   // the sub-handlers that a call has declared are not called anymore
	Gone     Type = "gone"     // an object is gone, or is not handled by this operator anymore
)

// The messages of the worker.
const (
	Hello   Type = "hello"   // the first line, with the version, and handlers
	Respond Type = "answer"  // the answer of a call
	Log     Type = "log"     // a line for the log of the object, or of the operator
	Post    Type = "event"   // an event about the object
	Write   Type = "write"   // what a daemon wants written now
	Execute Type = "execute" // sub-handlers to call before the call of their handler ends
)

// Edit is what a daemon wants written before it ends.
type Edit struct {
	Patch      map[string]any  `json:"patch,omitempty"`
	Operations json.RawMessage `json:"operations,omitempty"`
	Result     any             `json:"result,omitempty"`
	Conditions json.RawMessage `json:"conditions,omitempty"`
}

// ParseMessage parses a line of a worker.
func ParseMessage(line []byte) (*Message, error) {
	m := &Message{}
	if err := decodeStrict(line, m); err != nil {
		return nil, fmt.Errorf("the line is no message: %w", err)
	}
	switch m.Type {
	case Hello:
		if m.Version != Version {
			return nil, fmt.Errorf("the worker speaks version %d of the protocol, and this operator version %d", m.Version, Version)
		}
		return m, nil
	case Respond, Write, Execute:
		if m.ID == "" {
			return nil, fmt.Errorf("the %s has no id: repeat that of the call", m.Type)
		}
	case Log:
	case Post:
		if m.Event == nil || m.ID == "" {
			return nil, fmt.Errorf("the event has no id, or no event")
		}
		if err := m.Event.validate(); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("the type %q of the message is unknown", m.Type)
	}
	return m, nil
}

// Line returns the message as a line.
func (m *Message) Line() ([]byte, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("the %s message cannot be encoded: %w", m.Type, err)
	}
	return append(data, '\n'), nil
}
