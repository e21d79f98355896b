package queue

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Backlog keeps the watch events of objects until their event handlers have processed them: a
// queue of keys deduplicates, but every event counts. It has entries only for objects with
// event handlers, and only while events wait. It is safe for concurrent use.
type Backlog struct {
	mu      sync.Mutex
	limit   int
	waiting map[object.Key][]object.WatchEvent
	// lastOnly keeps one event per object, and none for deleted objects: without
	// workers, events could otherwise accumulate for the lifetime of the process.
	lastOnly bool
}

// NewBacklog returns a closed backlog with a maximum number of events per object.
func NewBacklog(limit int) *Backlog {
	return &Backlog{limit: limit, waiting: map[object.Key][]object.WatchEvent{}, lastOnly: true}
}

// Push appends an event.
func (b *Backlog) Push(key object.Key, event object.WatchEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.push(key, event)
}

func (b *Backlog) push(key object.Key, event object.WatchEvent) {
	switch {
	case b.lastOnly && (event.Type == watch.Deleted || event.Type == object.Vanished):
		delete(b.waiting, key)
	case b.lastOnly:
		b.waiting[key] = []object.WatchEvent{event}
	default:
		events := b.waiting[key]
		events = append(events, event)
		if len(events) > b.limit {
			// The oldest modification is dropped, because the next one includes it. The last event, additions,
			// and deletions are never dropped.
			oldest := slices.IndexFunc(events[:len(events)-1], func(e object.WatchEvent) bool { return e.Type == watch.Modified })
			if oldest >= 0 {
				events = slices.Delete(events, oldest, oldest+1)
			}
		}
		b.waiting[key] = events
	}
}

// Take removes and returns the events of an object.
func (b *Backlog) Take(key object.Key) []object.WatchEvent {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.waiting[key]
	delete(b.waiting, key)
	return events
}

// PutBack returns events that could not be processed, before those that have come since.
func (b *Backlog) PutBack(key object.Key, events []object.WatchEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	newer := b.waiting[key]
	delete(b.waiting, key)
	for _, event := range slices.Concat(events, newer) {
		b.push(key, event)
	}
}

// Has reports whether there are events of an object.
func (b *Backlog) Has(key object.Key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting[key]) > 0
}

// Drop removes the events of a stream.
func (b *Backlog) Drop(stream object.StreamKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.waiting {
		if stream.Has(key) {
			delete(b.waiting, key)
		}
	}
}

// Len returns the number of objects with waiting events.
func (b *Backlog) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// Shut keeps only the last event of each object.
func (b *Backlog) Shut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lastOnly = true
}

// Open starts to keep all events.
func (b *Backlog) Open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lastOnly = false
}
