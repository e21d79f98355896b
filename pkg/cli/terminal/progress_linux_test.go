package terminal

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/internal/pty"
)

// open opens a terminal with a width. It returns what programs write to, and a function that
// returns what they have written.
func open(t *testing.T, width uint16) (out *os.File, written func() string) {
	t.Helper()
	of, out, err := pty.Open(width)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = of.Close(), out.Close() })
	return out, func() string {
		text := make([]byte, 4096)
		n, err := of.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
}

func TestProgressOnATerminalIsOneLine(t *testing.T) {
	t.Setenv("TERM", "xterm")
	out, written := open(t, 20)
	p := &Progress{Out: out}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { p.Show("things: 250 objects of many") }, "\rthings: 250 objects"},
		{func() { p.Show("others: 1 object") }, "\rothers: 1 object   "},
		{p.End, "\r" + strings.Repeat(" ", 16) + "\r"},
	} {
		step.do()
		if got := written(); got != step.want {
			t.Errorf("got %q, want %q", got, step.want)
		}
	}
	p.End() // writes nothing
	p.Show("x")
	if got := written(); got != "\rx" {
		t.Errorf("got %q", got)
	}
}

func TestProgressInAPipeIsLines(t *testing.T) {
	var out bytes.Buffer
	p := &Progress{Out: &out}
	p.Show("things: 250 of 300 objects")
	p.Show("things: 300 of 300 objects")
	p.End()
	if got := out.String(); got != "things: 250 of 300 objects\nthings: 300 of 300 objects\n" {
		t.Errorf("got %q", got)
	}
	out.Reset()
	p = &Progress{Out: &out, Quiet: true}
	p.Show("things")
	p.End()
	if out.Len() > 0 {
		t.Errorf("got %q", out.String())
	}
}

func TestADumbTerminalGetsLines(t *testing.T) {
	t.Setenv("TERM", "dumb")
	out, written := open(t, 80)
	(&Progress{Out: out}).Show("things: 1 of 2 objects")
	if got := written(); got != "things: 1 of 2 objects\r\n" {
		t.Errorf("got %q", got)
	}
}
