package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// console puts whole lines of several writers on one terminal. Safe for
// concurrent use.
type console struct {
	mu  sync.Mutex
	out io.Writer
}

func newConsole(out io.Writer) *console { return &console{out: out} }

// say writes a line of our own.
func (c *console) say(format string, args ...any) { c.line("dev", fmt.Sprintf(format, args...)) }

func (c *console) line(who, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.out, "[%s] %s\n", who, text)
}

// Write takes the progress lines of others, as they are.
func (c *console) Write(piece []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(piece)
}

// prefixed returns a writer that puts the name before each line.
func (c *console) prefixed(name string) *prefixer {
	return &prefixer{console: c, name: name, spoken: make(chan struct{})}
}

// prefixer cuts a stream into lines. It has one writer: the process behind it.
type prefixer struct {
	console *console
	name    string
	rest    []byte
	once    sync.Once
	spoken  chan struct{} // closed at the first line
}

func (p *prefixer) Write(piece []byte) (int, error) {
	p.rest = append(p.rest, piece...)
	for {
		line, rest, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			return len(piece), nil
		}
		p.console.line(p.name, string(line))
		p.rest = rest
		p.once.Do(func() { close(p.spoken) })
	}
}

// flush writes what the process left without an end of line.
func (p *prefixer) flush() {
	if len(p.rest) > 0 {
		_, _ = p.Write([]byte("\n"))
	}
}
