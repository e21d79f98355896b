package controlplane

import (
	"bytes"
	"sync"
)

// tailSize is the number of bytes of the output that the error of a failed start shows.
const tailSize = 4096

// tail is a writer that keeps the end of its input. It is safe for concurrent use,
// because two processes write to it.
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

// String returns the last lines. They are complete unless a single line is too long.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := t.end[max(0, len(t.end)-tailSize):]
	if _, whole, cut := bytes.Cut(end, []byte("\n")); cut && len(end) < len(t.end) {
		end = whole
	}
	return string(end)
}
