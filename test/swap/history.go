package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// call is an entry of a handler: the start of a call, or its end. It is entry in operator/main.go.
type call struct {
	Process int    `json:"process"`
	Phase   string `json:"phase"`
	Handler string `json:"handler"`
	UID     string `json:"uid"`
	Name    string `json:"name"`
	Reason  string `json:"reason"`
	Retry   int    `json:"retry"`
	Version string `json:"version"`
	Step    int64  `json:"step"`
	Old     *int64 `json:"old"`
	New     *int64 `json:"new"`
	Outcome string `json:"outcome"`
	Run     string `json:"run"` // of a schedule
}

func (c *call) String() string {
	text := fmt.Sprintf("%s %s of %s, retry %d, step %d, %s to %s, version %s", c.Phase, c.Handler, c.Reason, c.Retry, c.Step,
		number(c.Old), number(c.New), c.Version)
	if c.Run != "" {
		text += ", run " + c.Run
	}
	if c.Phase == "end" {
		return text + ": " + c.Outcome
	}
	return text
}

func number(n *int64) string {
	if n == nil {
		return "none"
	}
	return strconv.FormatInt(*n, 10)
}

// isFinal reports whether the handler has ended with the call.
func (c *call) isFinal() bool { return c.Outcome == "success" || c.Outcome == "permanent" }

// event is one entry of the history: a call, a version of an object, or what the program does.
type event struct {
	at      time.Time
	process int    // the running process
	object  string // its name
	call    *call
	version *version
	note    string
}

// history is everything that has happened, in the order in which the program has learned it. An
// operator waits for the journal, so its write comes after the end of the call that it stores.
type history struct {
	began time.Time

	mu      sync.Mutex
	process int
	events  []event
	waiting map[chan event]bool
}

func newHistory() *history { return &history{began: time.Now(), waiting: map[chan event]bool{}} }

// ServeHTTP is the journal: it receives the entries of handlers.
func (h *history) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{}
	if err := json.NewDecoder(r.Body).Decode(c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.add(event{object: c.Name, call: c})
	w.WriteHeader(http.StatusNoContent)
}

func (h *history) add(e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.at, e.process = time.Now(), h.process
	h.events = append(h.events, e)
	for waiting := range h.waiting {
		select {
		case waiting <- e:
		default: // its reader is late, and has enough
		}
	}
}

// note adds what the program does.
func (h *history) note(object, format string, args ...any) {
	h.add(event{object: object, note: fmt.Sprintf(format, args...)})
}

// next notes that another process starts.
func (h *history) next(text string) int {
	h.mu.Lock()
	h.process++
	h.mu.Unlock()
	h.note("", "%s", text)
	return h.process
}

// follow returns the events from now on.
func (h *history) follow() (events <-chan event, stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	channel := make(chan event, 1000)
	h.waiting[channel] = true
	return channel, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting, channel)
	}
}

// all returns the events so far.
func (h *history) all() []event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events[:len(h.events):len(h.events)]
}

// text returns the events, one a line.
func (h *history) text() string {
	var text strings.Builder
	for _, e := range h.all() {
		_, _ = fmt.Fprintf(&text, "%7.3f  %2d  %-9s ", e.at.Sub(h.began).Seconds(), e.process, e.object)
		switch {
		case e.call != nil && e.call.Process != e.process:
			_, _ = fmt.Fprintf(&text, "%s (late, of process %d)\n", e.call, e.call.Process)
		case e.call != nil:
			_, _ = fmt.Fprintln(&text, e.call)
		case e.version != nil:
			_, _ = fmt.Fprintln(&text, e.version)
		default:
			_, _ = fmt.Fprintln(&text, e.note)
		}
	}
	return text.String()
}
