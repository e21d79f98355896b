package reconcile

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// lines keep the watch events of the objects until their event handlers have
// seen them: a queue of keys de-duplicates, and every event counts. Lines exist
// only for resources with event handlers, and only while events wait.
type lines struct {
	mu      sync.Mutex
	limit   int
	waiting map[object.Key][]object.WatchEvent
	// lastOnly keeps one event an object, and none of those that are gone: while
	// nobody works on them, which can be for as long as the process lives.
	lastOnly bool
}

func newLines(limit int) *lines {
	return &lines{limit: limit, waiting: map[object.Key][]object.WatchEvent{}, lastOnly: true}
}

// push appends an event.
func (l *lines) push(key object.Key, o object.WatchEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lastOnly && o.Type == watch.Deleted:
		delete(l.waiting, key)
	case l.lastOnly:
		l.waiting[key] = []object.WatchEvent{o}
	default:
		l.waiting[key] = l.appended(l.waiting[key], o)
	}
}

func (l *lines) appended(line []object.WatchEvent, o object.WatchEvent) []object.WatchEvent {
	line = append(line, o)
	if len(line) > l.limit {
		return merged(line)
	}
	return line
}

// merged drops the oldest modification that is not the last event: the next one
// shows all of it. What appeared and disappeared is never dropped.
func merged(line []object.WatchEvent) []object.WatchEvent {
	oldest := slices.IndexFunc(line[:len(line)-1], func(o object.WatchEvent) bool { return o.Type == watch.Modified })
	if oldest < 0 {
		return line
	}
	return slices.Delete(line, oldest, oldest+1)
}

// take empties the line of an object.
func (l *lines) take(key object.Key) []object.WatchEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.waiting[key]
	delete(l.waiting, key)
	return line
}

// shut keeps the last events only.
func (l *lines) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastOnly = true
}

// open starts to keep all events.
func (l *lines) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastOnly = false
}
