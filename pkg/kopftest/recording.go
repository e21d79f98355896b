package kopftest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/internal/handler"
)

// recording contains what the operator has done, over all its runs.
type recording struct {
	mu      sync.Mutex
	calls   []*HandlerCall
	writes  []Write
	logs    []Log
	effects []effect
	story   []moment       // all of these in their order, and the fault of a sweep
	counts  map[string]int // of the writes to each object
	// failures are those that the test has arranged. They are only added.
	failures []*Failure
}

// handOver makes what the test has done visible to the calls that follow. Nothing else orders them
// if only time passes in between, and the race detector would report variables that a test and its
// handlers share.
func (r *recording) handOver() { r.add(func(*recording) {}) }

func (r *recording) add(change func(*recording)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

// count returns the number of the next write to an object.
func (r *recording) count(object string) (number int) {
	r.add(func(r *recording) {
		if r.counts == nil {
			r.counts = map[string]int{}
		}
		r.counts[object]++
		number = r.counts[object]
	})
	return number
}

// HandlerCall is one call of a handler.
type HandlerCall struct {
	// Handler is the id of the handler: "createFn".
	Handler string
	// Kind is the kind of the handler: "create", "update", "daemon", ...
	Kind string
	// Object is the name of the object, with its namespace: "default/one". It is empty for
	// activities.
	Object string
	// Resource is the plural name of the resource.
	Resource string
	// Child is the name of the child that the call, or the drift, is about, with its resource and,
	// unless it is the parent's, its namespace: "configmaps/one". It is empty for calls about all
	// children, and for handlers of other kinds.
	Child string
	// Attempt is 1 for the first attempt.
	Attempt int
	// At is when the call began.
	At time.Time
	// Running reports whether the handler has not returned yet. Took and Err are zero.
	Running bool
	// Took is how long the call took.
	Took time.Duration
	// Err is the error that the handler returned, or else why the call has failed nevertheless: a mistake
	// in its sub-handlers, or a patch or a result that cannot be written.
	Err error
}

// String describes the call in a line.
func (c HandlerCall) String() string {
	outcome := "succeeded"
	switch {
	case c.Running:
		outcome = "is running"
	case c.Err != nil:
		outcome = "failed: " + c.Err.Error()
	}
	about := c.Object
	if c.Child != "" {
		about += " about " + c.Child
	}
	return strings.TrimSpace(fmt.Sprintf("%s of %s, attempt %d, %s", c.Handler, about, c.Attempt, outcome))
}

// observer records the calls of one run.
type observer struct {
	recording *recording
	from      *link
}

var _ handler.Observer = observer{}

// Begin records a call. The function records its end.
func (o observer) Begin(c *handler.Call) func(error) {
	if o.from.isCut() {
		return func(error) {}
	}
	call := newCall(c)
	o.recording.add(func(r *recording) {
		r.calls = append(r.calls, call)
		r.tell("call:  ", call)
	})
	return func(err error) {
		o.recording.add(func(*recording) {
			call.Running = false
			call.Took = time.Since(call.At)
			call.Err = err
		})
	}
}

// Fail records why the latest call of a handler for the object has failed although it returned no error. A
// handler whose sub-handlers are not done has not failed: they have separate calls.
func (o observer) Fail(c *handler.Call, err error) {
	if o.from.isCut() || errors.As(err, new(*handler.SubhandlersError)) {
		return
	}
	failed := newCall(c)
	o.recording.add(func(r *recording) {
		for _, call := range slices.Backward(r.calls) {
			if call.Handler == failed.Handler && call.Kind == failed.Kind && call.Resource == failed.Resource && call.Object == failed.Object {
				call.Err = err
				return
			}
		}
	})
}

func newCall(c *handler.Call) *HandlerCall {
	d := c.Declaration
	call := &HandlerCall{Handler: handler.DeclaredID(d), Kind: string(d.Kind), At: time.Now(), Running: true, Attempt: c.Attempt.Retry + 1}
	if d.Kind != handler.OnRestore { // which is about all children
		call.Child = strings.TrimPrefix(strings.TrimPrefix(d.ID, call.Handler), "/")
	}
	if c.Operator == nil {
		call.Object = c.Name()
		call.Resource = c.Resource().Plural
		if namespace := c.Namespace(); namespace != "" {
			call.Object = namespace + "/" + call.Object
		}
	}
	return call
}

// Log is a line of the operator's log.
type Log struct {
	At      time.Time
	Level   int // 0 for information, 1 and more for details, -1 for errors
	Message string
	Err     error
	Values  map[string]any
}

// String returns the line.
func (l Log) String() string {
	var values []string
	for name, value := range l.Values {
		values = append(values, fmt.Sprintf("%s=%v", name, readable(value)))
	}
	slices.Sort(values)
	text := fmt.Sprintf("%s %s %s", l.At.Format(time.TimeOnly), l.Message, strings.Join(values, " "))
	if l.Err != nil {
		text += ": " + l.Err.Error()
	}
	return strings.TrimSpace(text)
}

// readable returns a value as a person reads it: an object by its kind and name.
func readable(value any) any {
	if about, ok := value.(logr.Marshaler); ok {
		value = about.MarshalLog()
	}
	if object, ok := value.(corev1.ObjectReference); ok {
		return strings.TrimSpace(object.Kind + " " + strings.TrimPrefix(object.Namespace+"/"+object.Name, "/"))
	}
	return value
}

// sink records the log of one run.
type sink struct {
	recording *recording
	from      *link
	values    []any
}

var _ logr.LogSink = sink{}

// Init does nothing.
func (sink) Init(logr.RuntimeInfo) {}

// Enabled leaves out the details of details.
func (sink) Enabled(level int) bool { return level <= 1 }

// Info records a line.
func (s sink) Info(level int, message string, values ...any) {
	s.record(Log{Level: level, Message: message}, values)
}

// Error records an error.
func (s sink) Error(err error, message string, values ...any) {
	s.record(Log{Level: -1, Message: message, Err: err}, values)
}

func (s sink) record(line Log, values []any) {
	if s.from.isCut() {
		return
	}
	line.At = time.Now()
	line.Values = map[string]any{}
	all := append(slices.Clone(s.values), values...)
	for i := 0; i+1 < len(all); i += 2 {
		line.Values[fmt.Sprint(all[i])] = all[i+1]
	}
	s.recording.add(func(r *recording) { r.logs = append(r.logs, line) })
}

// WithValues adds values to all lines.
func (s sink) WithValues(values ...any) logr.LogSink {
	s.values = append(slices.Clone(s.values), values...)
	return s
}

// WithName changes nothing.
func (s sink) WithName(string) logr.LogSink { return s }

// Calls returns the calls of handlers until now, in the order of their beginning. With ids,
// it returns only the calls of these handlers. An id that neither a handler of the last start nor a
// sub-handler can have ends the test.
func (h *Harness) Calls(handlers ...string) []HandlerCall {
	h.t.Helper()
	if problem := h.recording.unknown(h.runs.declared, handlers); problem != "" {
		h.t.Fatal(problem)
	}
	h.recording.mu.Lock()
	defer h.recording.mu.Unlock()
	var found []HandlerCall
	for _, call := range h.recording.calls {
		if len(handlers) == 0 || slices.Contains(handlers, call.Handler) {
			found = append(found, *call)
		}
	}
	return found
}

// unknown names the first id that neither a declared handler has, nor one that was called before, nor
// can be that of a sub-handler: it is mistyped, or lacks the field of the handler.
func (r *recording) unknown(declared, asked []string) (problem string) {
	r.add(func(r *recording) {
		for _, id := range asked {
			isParent := func(parent string) bool { return id == parent || strings.HasPrefix(id, parent+"/") }
			wasCalled := func(call *HandlerCall) bool { return call.Handler == id }
			if !slices.ContainsFunc(declared, isParent) && !slices.ContainsFunc(r.calls, wasCalled) {
				problem = fmt.Sprintf("no handler has the id %q; the declared ids are %s", id, strings.Join(declared, ", "))
				return
			}
		}
	})
	return problem
}

// Writes returns the writes of the operator and of the client of its handlers until now.
// Events, leases, reviews, and dry runs do not count.
func (h *Harness) Writes() []Write {
	h.recording.mu.Lock()
	defer h.recording.mu.Unlock()
	return slices.Clone(h.recording.writes)
}

// Logs returns the log of the operator until now. A failed test prints it.
func (h *Harness) Logs() []Log {
	h.recording.mu.Lock()
	defer h.recording.mu.Unlock()
	return slices.Clone(h.recording.logs)
}

// moment is something that has happened.
type moment struct {
	at   time.Time
	kind string
	what fmt.Stringer
}

// tell adds to what has happened. The caller holds the lock. Later, more can be known.
func (r *recording) tell(kind string, what fmt.Stringer) {
	r.story = append(r.story, moment{at: time.Now(), kind: kind, what: what})
}

// describe returns what has happened, in lines.
func (r *recording) describe() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := make([]string, 0, len(r.story))
	for _, one := range r.story {
		lines = append(lines, fmt.Sprintf("%s %s %s", one.at.Format(time.TimeOnly), one.kind, one.what))
	}
	return lines
}
