package contention

import (
	"sync"
	"time"

	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// Threshold is how many times in a row are a dispute: more than a person has, and
	// no more than a second of two operators.
	Threshold = 10
	// Window is how soon after the time before one more has to come.
	Window = 10 * time.Second
)

// Detector has what was written just now. K names an object, with its uid. It is safe
// for concurrent use, if each object is written by one at a time.
type Detector[K comparable] struct {
	delays []time.Duration

	mu      sync.Mutex
	objects map[K]*entry
	sweeps  bool // a sweep is due
}

// New makes a table. The delays are the pauses in a dispute, the last of which
// repeats; without any, nothing is noticed.
func New[K comparable](delays []time.Duration) *Detector[K] {
	return &Detector[K]{delays: delays, objects: map[K]*entry{}}
}

// entry is about one object.
type entry struct {
	written marks     // what we have written last, field by field
	at      time.Time // and when
	undone  int       // how many times in a row
	since   time.Time // the last of them
	pause   time.Duration
}

// Finding is what a write is about to restore.
type Finding struct {
	// Fields are those that somebody else has changed since we wrote them.
	Fields []object.Path
	// Begins: with this write, that becomes a dispute.
	Begins bool
}

// Check compares a merge patch, which is to be the smallest one for the body, with
// what was written before.
func (t *Detector[K]) Check(name K, body, merge map[string]any) Finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.objects[name]
	if known == nil {
		return Finding{}
	}
	fields := known.written.restored(body, merge)
	undone := known.undone
	if known.calm() {
		undone = 0
	}
	return Finding{Fields: fields, Begins: len(fields) > 0 && undone+1 == Threshold}
}

// RecordWrite notes what was written, as far as the server has taken it, and tells for
// how long the object is to be left alone.
func (t *Detector[K]) RecordWrite(name K, merge map[string]any, taken func(object.Path, any) bool, found Finding) time.Duration {
	if len(t.delays) == 0 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.objects[name]
	if known == nil {
		known = &entry{}
		t.objects[name] = known
		t.sweep()
	}
	known.at = time.Now()
	known.written = known.written.with(merge, taken)
	if len(found.Fields) == 0 {
		return 0
	}
	return known.undo(t.delays)
}

// undo counts, and tells the next pause.
func (e *entry) undo(delays []time.Duration) time.Duration {
	if e.calm() {
		e.undone, e.pause = 0, 0
	}
	e.undone++
	e.since = time.Now()
	if over := e.undone - Threshold; over >= 0 {
		e.pause = delays[min(over, len(delays)-1)]
	}
	return e.pause
}

// Delay is for how long an object is still to be left alone.
func (t *Detector[K]) Delay(name K) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.objects[name]; known != nil && known.pause > 0 {
		return max(0, time.Until(known.since.Add(known.pause)))
	}
	return 0
}

// calm tells whether nothing was undone for so long that a dispute would be over.
func (e *entry) calm() bool { return time.Since(e.since) > Window+2*e.pause }

// sweep forgets, soon, what is over.
func (t *Detector[K]) sweep() {
	if t.sweeps {
		return
	}
	t.sweeps = true
	time.AfterFunc(Window, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.sweeps = false
		for name, known := range t.objects {
			if known.calm() && time.Since(known.at) >= Window {
				delete(t.objects, name)
			}
		}
		if len(t.objects) > 0 {
			t.sweep()
		}
	})
}
