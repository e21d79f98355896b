package controlplane

import (
	"bytes"
	"sync"
)

// tailSize is how much of the output a failed start shows, in bytes.
const tailSize = 4096

// tail is a writer that remembers the end of what it got. Safe for concurrent
// use, as two processes write to it.
type tail struct {
	mu  sync.Mutex
	end []byte
}

func (t *tail) Write(piece []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, piece...)
	if len(t.end) > 2*tailSize {
		t.end = append([]byte(nil), t.end[len(t.end)-tailSize:]...)
	}
	return len(piece), nil
}

// String returns the last lines, whole ones unless a line alone is too long.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := t.end[max(0, len(t.end)-tailSize):]
	if _, whole, cut := bytes.Cut(end, []byte("\n")); cut && len(end) < len(t.end) {
		end = whole
	}
	return string(end)
}
