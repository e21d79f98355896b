package events

import (
	"strings"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

const (
	maxMessage  = 1024 // bytes; the limit of events.k8s.io
	maxWord     = 128  // bytes; the same
	ellipsis    = "..."
	unspecified = "Unspecified" // the reason of an event without one
)

// singleLine converts a text to one safe line: newlines break the output of kubectl,
// escape sequences manipulate terminals, and direction marks reorder the displayed text.
func singleLine(text string) string {
	text = strings.Map(func(c rune) rune {
		switch {
		case unicode.Is(unicode.Bidi_Control, c):
			return -1
		case unicode.IsControl(c), c == '\u2028', c == '\u2029':
			return ' '
		}
		return c
	}, text)
	return cutMiddle(strings.TrimSpace(text), maxMessage)
}

// cutMiddle truncates a text but keeps both ends: the beginning of an error message says
// what was tried, the end says why it failed.
func cutMiddle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head := (limit - len(ellipsis)) / 2
	tail := len(text) - (limit-len(ellipsis))/2
	for !utf8.RuneStart(text[tail]) {
		tail++
	}
	return cutEnd(text, head) + ellipsis + text[tail:]
}

func cutEnd(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// singleWord converts a text to a single word, as types and reasons of events require:
// "some reason" becomes "someReason".
func singleWord(text, otherwise string) string {
	parts := strings.FieldsFunc(text, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("-_./:", c)
	})
	for i, part := range parts[min(1, len(parts)):] {
		first, size := utf8.DecodeRuneInString(part)
		parts[i+1] = string(unicode.ToUpper(first)) + part[size:]
	}
	if joined := cutEnd(strings.Join(parts, ""), maxWord); joined != "" {
		return joined
	}
	return otherwise
}

// combinedMessage returns the message of an event that combines several similar events.
func combinedMessage(event *corev1.Event) string {
	return cutMiddle(combined+event.Message, maxMessage)
}

// combined begins the message of an event that combines several ones.
const combined = "(combined from similar events): "
