package contention

import (
	"sync"
	"time"

	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// Threshold is the number of consecutive overwrites that count as contention. A
	// person rarely repeats a change so often; two operators do so within a second.
	Threshold = 10
	// Window is the longest time between two consecutive overwrites.
	Window = 10 * time.Second
)

// Detector tracks recent writes. K identifies an object, including its uid. It is safe for
// concurrent use, as long as only one goroutine at a time writes each object.
type Detector[K comparable] struct {
	delays []time.Duration

	mu         sync.Mutex
	objects    map[K]*entry
	cleanupDue bool // a cleanup is scheduled
}

// New returns a Detector. The delays follow the writes under contention; the last one
// repeats. Without delays, nothing is detected.
func New[K comparable](delays []time.Duration) *Detector[K] {
	return &Detector[K]{delays: delays, objects: map[K]*entry{}}
}

// entry contains the recent writes of one object.
type entry struct {
	hashes        fieldHashes // of the fields as they were written last
	writtenAt     time.Time   // the time of the last write
	overwrites    int         // the number of consecutive ones
	lastOverwrite time.Time   // the time of the last one
	delay         time.Duration
}

// Finding describes what a write is about to restore.
type Finding struct {
	// Fields lists the fields that another writer has changed since the operator wrote them.
	Fields []object.Path
	// Begins is set if contention begins with this write.
	Begins bool

	removed []uint64 // the ids of the fields that the write removes together with a mapping
}

// Check compares a merge patch with earlier writes. The patch must be minimal for the body.
func (d *Detector[K]) Check(key K, body, merge map[string]any) Finding {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.objects[key]
	if e == nil {
		return Finding{}
	}
	fields, removed := e.hashes.compare(body, merge)
	overwrites := e.overwrites
	if e.isOver() {
		overwrites = 0
	}
	return Finding{Fields: fields, Begins: len(fields) > 0 && overwrites+1 == Threshold, removed: removed}
}

// RecordWrite records a write after it was made, and returns how long the object must
// be left alone. The function reports whether the server has accepted the value of a
// field.
func (d *Detector[K]) RecordWrite(key K, merge map[string]any, accepted func(object.Path, any) bool, finding Finding) time.Duration {
	if len(d.delays) == 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.objects[key]
	if e == nil {
		e = &entry{}
		d.objects[key] = e
		d.scheduleCleanup()
	}
	e.writtenAt = time.Now()
	e.hashes.forget(finding.removed)
	e.hashes = e.hashes.updated(merge, accepted)
	if len(finding.Fields) == 0 {
		return 0
	}
	return e.countOverwrite(d.delays)
}

// countOverwrite counts an overwrite, and returns the next delay.
func (e *entry) countOverwrite(delays []time.Duration) time.Duration {
	if e.isOver() {
		e.overwrites = 0
		e.delay = 0
	}
	e.overwrites++
	e.lastOverwrite = time.Now()
	if over := e.overwrites - Threshold; over >= 0 {
		e.delay = delays[min(over, len(delays)-1)]
	}
	return e.delay
}

// Delay returns how much longer an object must be left alone.
func (d *Detector[K]) Delay(key K) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.objects[key]; e != nil && e.delay > 0 {
		return max(0, time.Until(e.lastOverwrite.Add(e.delay)))
	}
	return 0
}

// isOver reports whether the last overwrite is so long ago that contention has ended.
func (e *entry) isOver() bool { return time.Since(e.lastOverwrite) > Window+2*e.delay }

// scheduleCleanup schedules the removal of expired entries.
func (d *Detector[K]) scheduleCleanup() {
	if d.cleanupDue {
		return
	}
	d.cleanupDue = true
	time.AfterFunc(Window, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.cleanupDue = false
		for key, e := range d.objects {
			if e.isOver() && time.Since(e.writtenAt) >= Window {
				delete(d.objects, key)
			}
		}
		if len(d.objects) > 0 {
			d.scheduleCleanup()
		}
	})
}
