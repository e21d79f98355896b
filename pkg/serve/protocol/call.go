package protocol

import (
	"encoding/json"
	"time"
)

// Version is the version of the protocol. All messages of one version can be read by all programs for it.
const Version = 1

// Call is one call of a handler.
type Call struct {
	Version int `json:"version"`
	// ID is another one for each call of an operator.
	ID string `json:"id"`
	// Handler is the id of the handler, as declared. That of a sub-handler begins with its parent's: a/b.
	Handler  string `json:"handler"`
	Function string `json:"function"`
	Kind     Kind   `json:"kind"`
	// Parent is the id of the call that has declared the sub-handler.
	Parent string `json:"parent,omitempty"`
	// Reason is create, update, delete, or resume for changes, and that of the operation for admission.
	Reason    string          `json:"reason,omitempty"`
	Resource  *Resource       `json:"resource,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name,omitempty"`
	UID       string          `json:"uid,omitempty"`
	Object    json.RawMessage `json:"object,omitempty"`
	// Field is the field of the handler, as declared: old, new, and diff are relative to it.
	Field string          `json:"field,omitempty"`
	Old   json.RawMessage `json:"old,omitempty"`
	New   json.RawMessage `json:"new,omitempty"`
	// OldUnknown is true if there is an old value, but only its hash is stored: of Secrets, and of very
	// large objects. Then old is absent, and null takes the place of the unknown values in diff.
	OldUnknown bool       `json:"oldUnknown,omitempty"`
	Diff       []DiffItem `json:"diff,omitempty"`
	Param      any        `json:"param,omitempty"`
	Retry      int        `json:"retry"`
	Started    *time.Time `json:"started,omitempty"`
	Runtime    float64    `json:"runtime"` // seconds since Started
	Event      string     `json:"event,omitempty"`
	Scheduled  *time.Time `json:"scheduled,omitempty"`
	Failures   any        `json:"failures,omitempty"` // errors by ids, for afterFailure
	Children   []any      `json:"children,omitempty"` // for child, and of daemons with watchChildren
	Review     *Review    `json:"admission,omitempty"`
	// Indices are those that the handler asks for, by their names.
	Indices map[string][]IndexEntry `json:"indices,omitempty"`

	// Child is the child of child and drift. It is absent if the call is about all children, and if the child of a drift was
	// deleted.
	Child   json.RawMessage `json:"child,omitempty"`
	Initial bool            `json:"initial,omitempty"` // child: the call is about all children
	Moved   bool            `json:"moved,omitempty"`   // child: it has another parent now, or had one before
	Drift   *Drift          `json:"drift,omitempty"`

	From string `json:"from,omitempty"` // convert: the version of the object
	To   string `json:"to,omitempty"`   // convert: the version that it gets
}

// IndexEntry is a key of an index, with the values of all objects that have it.
type IndexEntry struct {
	Key    json.RawMessage   `json:"key"`
	Values []json.RawMessage `json:"values"`
}

// Drift is what others have changed in a child.
type Drift struct {
	EnsuredBy string         `json:"ensuredBy"` // the id of the handler that returns the child
	Kind      string         `json:"kind"`      // of the child, with its group: Deployment.apps
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	Deleted   bool           `json:"deleted"`
	Fields    []DriftedField `json:"fields,omitempty"`
}

// DriftedField is a field of a child that is not what its handler wants.
type DriftedField struct {
	Path string `json:"path"`
	// Manager is the field manager that has changed the field, and Since the time of its last change of the child. A field
	// that was removed has neither.
	Manager string     `json:"manager,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	// Wanted and Found are absent if there is no such value.
	Wanted json.RawMessage `json:"wanted,omitempty"`
	Found  json.RawMessage `json:"found,omitempty"`
}

// Kind is the kind of a call.
type Kind string

// The kinds. Reason says more about a change.
const (
	Change   Kind = "change"
	Event    Kind = "event"
	Timer    Kind = "timer"
	Daemon   Kind = "daemon"
	Index    Kind = "index"
	Child    Kind = "child"
	Ensure   Kind = "ensure"
	Drifted  Kind = "drift"
	Validate Kind = "validate"
	Mutate   Kind = "mutate"
	Convert  Kind = "convert"
	Startup  Kind = "startup"
	Cleanup  Kind = "cleanup"
	Probe    Kind = "probe"
)

// Resource is the resource of the object.
type Resource struct {
	Group      string `json:"group"`
	Version    string `json:"version"`
	Kind       string `json:"kind"`
	Plural     string `json:"plural"`
	Namespaced bool   `json:"namespaced"`
}

// DiffItem is one difference, in Kopf's form: [op, path, old, new].
type DiffItem struct {
	Op       string
	Path     []string
	Old, New any
}

// MarshalJSON encodes the item as a list.
func (d DiffItem) MarshalJSON() ([]byte, error) {
	path := d.Path
	if path == nil {
		path = []string{}
	}
	return json.Marshal([]any{d.Op, path, d.Old, d.New})
}

// UnmarshalJSON decodes the item from a list.
func (d *DiffItem) UnmarshalJSON(data []byte) error {
	list := []any{&d.Op, &d.Path, &d.Old, &d.New}
	return json.Unmarshal(data, &list)
}

// Review is what is asked of an admission handler.
type Review struct {
	Operation   string `json:"operation"`
	Subresource string `json:"subresource,omitempty"`
	DryRun      bool   `json:"dryRun"`
	UserInfo    any    `json:"userInfo"`
}
