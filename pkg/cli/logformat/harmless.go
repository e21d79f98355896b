package logformat

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// control are the characters that end a line, or move the cursor.
func control(r rune) bool { return r < ' ' }

// controlInLines are those in a text of several lines.
func controlInLines(r rune) bool { return control(r) && r != '\n' && r != '\t' }

// deceptive are those that JSON leaves as they are, though terminals and editors
// obey them: the other control characters, separators of lines, and what reverses
// the direction of writing.
func deceptive(r rune) bool {
	return r >= 0x7f && (unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control))
}

// escape replaces characters as JSON does.
func escape(text string, hidden func(rune) bool) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// harmless writes lines that control nothing but the colour of their level.
type harmless struct{ out io.Writer }

// Write writes a line, and counts it as it was given.
func (h harmless) Write(line []byte) (int, error) {
	clean := line
	if !utf8.Valid(line) || bytes.IndexFunc(line, deceptive) >= 0 {
		clean = []byte(escape(strings.ToValidUTF8(string(line), string(utf8.RuneError)), deceptive))
	}
	if _, err := h.out.Write(clean); err != nil {
		return 0, err
	}
	return len(line), nil
}
