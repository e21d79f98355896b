package faults

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// history is the sequence of everything that happens in one experiment: the starts of handlers,
// the writes of operators, and the actions of others. It checks each of them immediately
// against everything committed before.
type history struct {
	mu       sync.Mutex
	scenario *scenario
	began    time.Time
	lines    []string
	breaches []string

	starts    []start
	writer    string // the writer of the last version
	bases     []object.Essence
	committed state // from the last response of the API server to an operator
	requests  int   // requests to write, including dry runs
	writes    int   // without dry runs
	changed   time.Time
	// overlap is set if several operators were alive at the same time.
	overlap bool
	company company
	// lost contains what others have written, and must be in every later version.
	others others
}

// start is a call of a handler.
type start struct {
	operator, id string
	reason       kopf.Reason
	retry        int
	uid          string
	base         object.Essence // last handled
	essence      object.Essence // current
	held         bool           // the object has our finalizer
}

func newHistory(s *scenario) *history {
	return &history{scenario: s, began: time.Now(), changed: time.Now(), company: company{}}
}

// overlaps records that several operators are working from now on.
func (h *history) overlaps() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.overlap = true
}

// note adds a line to the history.
func (h *history) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log(format, args...)
}

func (h *history) log(format string, args ...any) {
	h.changed = time.Now()
	since := h.changed.Sub(h.began).Round(time.Millisecond)
	h.lines = append(h.lines, fmt.Sprintf("%8s  %s", since, fmt.Sprintf(format, args...)))
}

func (h *history) breach(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h.breaches = append(h.breaches, text)
	h.log("BREACH: %s", text)
}

// called records the start of a handler, unless the operator is dead: then the handler does not
// count.
func (h *history) called(o *operator, id string, c *kopf.Change) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.dead.Load() {
		return false
	}
	essence, _ := c.New().Any().(map[string]any)
	s := start{
		operator: o.name, id: id, reason: c.Reason(), retry: c.Retry(), uid: string(c.UID()),
		base: c.OldEssence(), essence: essence, held: contains(c.Body().Finalizers(), ourFinalizer),
	}
	h.log("%s calls %s for %s, retry %d, on version %s: %s", o.name, id, s.reason, s.retry, c.Body().ResourceVersion(), digest(essence))
	h.judgeStart(s)
	h.starts = append(h.starts, s)
	return true
}

// attempted counts a write that an operator is about to send.
func (h *history) attempted(w *write) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests++
	if !w.dry() {
		h.writes++
	}
	w.number = h.requests
	h.log("%s writes #%d %s: %s", w.operator.name, w.number, w.target(), bytes.TrimSpace(w.body()))
}

// answered records the response of the API server to a write, and checks the returned object.
func (h *history) answered(w *write, status int, content []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if status >= 300 {
		h.log("#%d is refused with %d", w.number, status)
		return
	}
	after, err := newState(content)
	if err != nil {
		h.breach("the answer to #%d cannot be read: %v", w.number, err)
		return
	}
	h.log("#%d is committed as version %s", w.number, after.body.ResourceVersion())
	h.judgeCommit(w.operator.name, after)
	h.judgeCompany(w.operator.name, after)
	if !after.isBefore(h.committed) {
		h.committed, h.writer = after, w.operator.name
	}
}

// quiet returns how long nothing has happened.
func (h *history) quiet() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.changed)
}

// hasCalled reports whether an operator has called any handler.
func (h *history) hasCalled(operator string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.starts, func(s start) bool { return s.operator == operator })
}

// hasWritten reports whether an operator other than the given one has made the last write, or
// has nothing to write.
func (h *history) hasWritten(other string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.writer != other || time.Since(h.changed) > calm
}

// concluded adds the history to an outcome.
func (h *history) concluded(o outcome) outcome {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.starts, o.requests, o.writes, o.breaches = slices.Clone(h.starts), h.requests, h.writes, slices.Clone(h.breaches)
	return o
}

func (h *history) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, "\n")
}
