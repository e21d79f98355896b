package object

import (
	"bytes"
	"iter"
)

// cursor reads JSON text in one pass, and decodes only what is needed. It does not
// validate the text, which must be valid.
type cursor struct {
	text []byte
	at   int
}

// fields iterates over the mapping at the cursor. It yields where the raw key of each field is,
// with the cursor at its value, and skips values that the caller does not read. For other
// values, it yields nothing.
func (c *cursor) fields() iter.Seq[span] {
	return func(yield func(span) bool) {
		if c.text[c.at] != '{' {
			return
		}
		c.at++
		for c.space(); c.text[c.at] != '}'; c.space() {
			key := span{from: c.at}
			c.value()
			key.to = c.at
			c.space()
			c.at++ // the colon
			c.space()
			value := c.at
			if !yield(key) {
				return
			}
			if c.at == value {
				c.value()
			}
			c.space()
			if c.text[c.at] == ',' {
				c.at++
			}
		}
		c.at++
	}
}

// items iterates over the list at the cursor, with the cursor at each item, which the caller must read.
func (c *cursor) items() func(yield func() bool) {
	return func(yield func() bool) {
		c.at++
		for c.space(); c.text[c.at] != ']'; c.space() {
			if !yield() {
				return
			}
			c.space()
			if c.text[c.at] == ',' {
				c.at++
			}
		}
		c.at++
	}
}

// in returns a part of the text.
func (c *cursor) in(s span) []byte { return c.text[s.from:s.to] }

// value returns the raw text of the value at the cursor.
func (c *cursor) value() []byte {
	begin := c.at
	switch c.text[c.at] {
	case '"':
		c.string()
	case '{', '[':
		c.container()
	default:
		for c.at < len(c.text) && !isDelimiter(c.text[c.at]) {
			c.at++
		}
	}
	return c.text[begin:c.at]
}

// string skips a string, up to the first quote that is not escaped.
func (c *cursor) string() {
	c.at++
	for {
		quote := bytes.IndexByte(c.text[c.at:], '"')
		end := c.at + quote
		escapes := 0
		for end-escapes > c.at && c.text[end-escapes-1] == '\\' {
			escapes++
		}
		c.at = end + 1
		if escapes%2 == 0 {
			return
		}
	}
}

func (c *cursor) container() {
	for depth := 0; ; {
		switch c.text[c.at] {
		case '"':
			c.string()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		c.at++
		if depth == 0 {
			return
		}
	}
}

func (c *cursor) space() {
	for c.at < len(c.text) && isSpace(c.text[c.at]) {
		c.at++
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

// isDelimiter reports whether a number or a word ends before the character.
func isDelimiter(b byte) bool { return isSpace(b) || b == ',' || b == '}' || b == ']' || b == ':' }
