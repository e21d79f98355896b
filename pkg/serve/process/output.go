package process

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"
)

// The limits of what a program says besides its answer.
const (
	MaxLine  = 4096 // bytes of a line of standard error; the rest is cut off
	MaxLines = 1000 // lines of standard error of one call; the others are counted
)

// bounded collects output up to a limit.
type bounded struct {
	limit    int
	overflow func()

	data []byte
	full bool
}

// Write collects the bytes, until there are too many.
func (b *bounded) Write(data []byte) (int, error) {
	if b.full {
		return len(data), nil
	}
	if len(b.data)+len(data) > b.limit {
		b.full = true
		b.data = nil
		b.overflow()
		return len(data), nil
	}
	b.data = append(b.data, data...)
	return len(data), nil
}

// Lines passes on text line by line. It is a writer for one goroutine.
type Lines struct {
	// Limit is the number of lines; 0 for no limit.
	Limit int
	Line  func(string)

	mu      sync.Mutex
	rest    []byte
	cut     bool
	count   int
	dropped int
	last    string
}

// Write passes on the complete lines.
func (l *Lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for remaining := data; len(remaining) > 0; {
		line, after, complete := bytes.Cut(remaining, []byte{'\n'})
		if space := MaxLine - len(l.rest); len(line) > space {
			line = line[:space]
			l.cut = true
		}
		l.rest = append(l.rest, line...)
		if complete {
			l.pass()
		}
		remaining = after
	}
	return len(data), nil
}

// Close passes on what is left.
func (l *Lines) Close() (dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		l.pass()
	}
	return l.dropped
}

// Last returns the last line that is not empty.
func (l *Lines) Last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *Lines) pass() {
	text := Clean(string(l.rest))
	if l.cut {
		text += "…"
	}
	l.rest = l.rest[:0]
	l.cut = false
	if text == "" {
		return
	}
	l.last = text
	if l.Limit > 0 && l.count == l.Limit {
		l.dropped++
		return
	}
	l.count++
	if l.Line != nil {
		l.Line(text)
	}
}

// Clean returns a text of a program for a log: valid, and without control characters.
func Clean(text string) string {
	return strings.TrimRight(strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || r == utf8.RuneError:
			return -1
		default:
			return r
		}
	}, text), " ")
}
