// Package terminal shows the progress of commands.
//
// This package carries no compatibility promise.
package terminal

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Progress shows how far a command is: on one line of a terminal, which is removed in the end, or
// in lines of a pipe.
type Progress struct {
	Out io.Writer
	// Quiet writes nothing where there is no terminal.
	Quiet bool

	shown int // the length of the line
}

// Show shows a text instead of the former one.
func (p *Progress) Show(text string) {
	width, isTerminal := p.width()
	switch {
	case isTerminal:
		if room := max(width-1, 0); len(text) > room { // a full line would be wrapped
			text = text[:room]
		}
		_, _ = io.WriteString(p.Out, "\r"+text+strings.Repeat(" ", max(p.shown-len(text), 0)))
		p.shown = len(text)
	case !p.Quiet:
		_, _ = io.WriteString(p.Out, text+"\n")
	}
}

// End removes the line from the terminal.
func (p *Progress) End() {
	if p.shown > 0 {
		_, _ = io.WriteString(p.Out, "\r"+strings.Repeat(" ", p.shown)+"\r")
		p.shown = 0
	}
}

// width returns the number of columns, which can change at any time, and whether there is a
// terminal that can write a line anew.
func (p *Progress) width() (int, bool) {
	file, ok := p.Out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	return width, err == nil && width > 0
}
