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

	mu         sync.Mutex
	objects    map[K]*entry
	cleanupDue bool // a sweep is due
}

// New makes a table. The delays are the pauses in a dispute, the last of which
// repeats; without any, nothing is noticed.
func New[K comparable](delays []time.Duration) *Detector[K] {
	return &Detector[K]{delays: delays, objects: map[K]*entry{}}
}

// entry is about one object.
type entry struct {
	hashes        fieldHashes // what we have written last, field by field
	writtenAt     time.Time   // and when
	overwrites    int         // how many times in a row
	lastOverwrite time.Time   // the last of them
	delay         time.Duration
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
func (t *Detector[K]) Check(key K, body, merge map[string]any) Finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.objects[key]
	if known == nil {
		return Finding{}
	}
	fields := known.hashes.overwritten(body, merge)
	overwrites := known.overwrites
	if known.isOver() {
		overwrites = 0
	}
	return Finding{Fields: fields, Begins: len(fields) > 0 && overwrites+1 == Threshold}
}

// RecordWrite notes what was written, as far as the server has taken it, and tells for
// how long the object is to be left alone.
func (t *Detector[K]) RecordWrite(key K, merge map[string]any, taken func(object.Path, any) bool, finding Finding) time.Duration {
	if len(t.delays) == 0 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.objects[key]
	if known == nil {
		known = &entry{}
		t.objects[key] = known
		t.scheduleCleanup()
	}
	known.writtenAt = time.Now()
	known.hashes = known.hashes.updated(merge, taken)
	if len(finding.Fields) == 0 {
		return 0
	}
	return known.countOverwrite(t.delays)
}

// undo counts, and tells the next pause.
func (e *entry) countOverwrite(delays []time.Duration) time.Duration {
	if e.isOver() {
		e.overwrites, e.delay = 0, 0
	}
	e.overwrites++
	e.lastOverwrite = time.Now()
	if over := e.overwrites - Threshold; over >= 0 {
		e.delay = delays[min(over, len(delays)-1)]
	}
	return e.delay
}

// Delay is for how long an object is still to be left alone.
func (t *Detector[K]) Delay(key K) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.objects[key]; known != nil && known.delay > 0 {
		return max(0, time.Until(known.lastOverwrite.Add(known.delay)))
	}
	return 0
}

// calm tells whether nothing was undone for so long that a dispute would be over.
func (e *entry) isOver() bool { return time.Since(e.lastOverwrite) > Window+2*e.delay }

// sweep forgets, soon, what is over.
func (t *Detector[K]) scheduleCleanup() {
	if t.cleanupDue {
		return
	}
	t.cleanupDue = true
	time.AfterFunc(Window, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.cleanupDue = false
		for key, known := range t.objects {
			if known.isOver() && time.Since(known.writtenAt) >= Window {
				delete(t.objects, key)
			}
		}
		if len(t.objects) > 0 {
			t.scheduleCleanup()
		}
	})
}
