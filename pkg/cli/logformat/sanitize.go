package logformat

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isControl reports whether a character ends a line or moves the cursor.
func isControl(r rune) bool { return r < ' ' }

// isControlInText is isControl for texts of several lines.
func isControlInText(r rune) bool { return isControl(r) && r != '\n' && r != '\t' }

// isDeceptive reports whether terminals and editors interpret a character that JSON does
// not escape: other control characters, line separators, and characters that reverse the
// text direction.
func isDeceptive(r rune) bool {
	return r >= 0x7f && (unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control))
}

// escape escapes characters as JSON does.
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

// sanitizer escapes deceptive characters. Only the colors of levels remain.
type sanitizer struct{ out io.Writer }

// Write writes a line, and returns the length before the escaping.
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
