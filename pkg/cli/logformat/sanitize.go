package logformat

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isControl are the characters that end a line, or move the cursor.
func isControl(r rune) bool { return r < ' ' }

// isControlInText are those in a text of several lines.
func isControlInText(r rune) bool { return isControl(r) && r != '\n' && r != '\t' }

// isDeceptive are those that JSON leaves as they are, though terminals and editors
// obey them: the other control characters, separators of lines, and what reverses
// the direction of writing.
func isDeceptive(r rune) bool {
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

// sanitizer writes lines that control nothing but the colour of their level.
type sanitizer struct{ out io.Writer }

// Write writes a line, and counts it as it was given.
func (s sanitizer) Write(line []byte) (int, error) {
	clean := line
	if !utf8.Valid(line) || bytes.IndexFunc(line, isDeceptive) >= 0 {
		clean = []byte(escape(strings.ToValidUTF8(string(line), string(utf8.RuneError)), isDeceptive))
	}
	if _, err := s.out.Write(clean); err != nil {
		return 0, err
	}
	return len(line), nil
}
