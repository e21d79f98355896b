package recording

import "github.com/kopf-go/kopf/pkg/model/selector"

// Format is the version of the format.
const Format = 3

// Entry is a line of a recording. Exactly one of its pointers is set.
type Entry struct {
	At       string             `json:"at"` // since the start: "1.5s"
	Start    *Start             `json:"start,omitempty"`
	Resource *selector.Resource `json:"resource,omitempty"`
	Event    *Event             `json:"event,omitempty"`
	Pass     *Pass              `json:"pass,omitempty"`
	Outcome  *Outcome           `json:"outcome,omitempty"`
}

// Start describes the recording.
type Start struct {
	Format int `json:"format"`
	// Constants are values that are readable wherever they occur.
	Constants []any `json:"constants,omitempty"`
	// Fields are readable.
	Fields []string `json:"fields,omitempty"`
}

// Event is a watch event. Objects of the initial lists have no type.
type Event struct {
	Resource string         `json:"resource"`
	Type     string         `json:"type,omitempty"`
	Object   map[string]any `json:"object"`
	Decision Decision       `json:"decision"`
	Unsure   []string       `json:"unsure,omitempty"`
}

// Pass is a look at an object, with its outcome.
type Pass struct {
	Resource string         `json:"resource"`
	Object   map[string]any `json:"object"`
	Facts    Facts          `json:"facts"`
	Decision Decision       `json:"decision"`
	// Unsure are the handlers about which the decision cannot be repeated with hashes.
	Unsure []string `json:"unsure,omitempty"`
}

// Facts are what a decision depends on besides the object and the handlers.
type Facts struct {
	Old     map[string]any `json:"old"` // the state that was handled last; null if there is none
	Initial bool           `json:"initial,omitempty"`
	Held    bool           `json:"held,omitempty"` // by the finalizer of the operator
	// Records are those of the declared handlers, by their ids.
	Records map[string]Record `json:"records,omitempty"`
}

// Record contains what is stored about a handler.
type Record struct {
	Reason   string `json:"reason"`
	Attempts int    `json:"attempts,omitempty"`
	Ended    bool   `json:"ended,omitempty"`
}

// Decision says which handlers are for what has happened, and why.
type Decision struct {
	Reason string   `json:"reason,omitempty"`
	Diff   []string `json:"diff,omitempty"` // "change spec.size"
	// Due are the handlers that a plan selects for the change, or those of a watch event.
	Due []string `json:"due,omitempty"`
	// Background are the daemons and timers that the object has.
	Background []string `json:"background,omitempty"`
	// Children are the handlers that the object has for what happens to its children.
	Children []string `json:"children,omitempty"`
}

// Outcome is the result of an attempt of a handler of changes.
type Outcome struct {
	Resource string `json:"resource"`
	Object   string `json:"object"` // the hash of its uid
	Handler  string `json:"handler"`
	// Result is "succeeded", "failed", or "retried".
	Result string `json:"result"`
}
