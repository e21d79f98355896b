package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// console writes whole lines of several writers to one terminal. It is safe for
// concurrent use.
type console struct {
	mu  sync.Mutex
	out io.Writer
}

func newConsole(out io.Writer) *console { return &console{out: out} }

// say writes a line of this program.
func (c *console) say(format string, args ...any) { c.line("dev", fmt.Sprintf(format, args...)) }

func (c *console) line(who, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.out, "[%s] %s\n", who, text)
}

// Write copies the progress lines of other programs unchanged.
func (c *console) Write(piece []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(piece)
}

// prefixed returns a writer that puts the name before each line.
func (c *console) prefixed(name string) *prefixer {
	return &prefixer{console: c, name: name, spoken: make(chan struct{}), registered: make(chan struct{})}
}

// webhooksRegistered is what an operator logs when the cluster has its webhook configurations.
const webhooksRegistered = "The cluster calls the admission handlers."

// prefixer splits a stream into lines. Only the process behind it writes to it.
type prefixer struct {
	console      *console
	name         string
	rest         []byte
	speakOnce    sync.Once
	spoken       chan struct{} // closed at the first line
	registerOnce sync.Once
	registered   chan struct{} // closed when the operator has registered its webhooks
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
		p.speakOnce.Do(func() { close(p.spoken) })
		if bytes.Contains(line, []byte(webhooksRegistered)) {
			p.registerOnce.Do(func() { close(p.registered) })
		}
	}
}

// flush writes the last line if the process did not end it.
func (p *prefixer) flush() {
	if len(p.rest) > 0 {
		_, _ = p.Write([]byte("\n"))
	}
}
