package object

import (
	"github.com/tidwall/gjson"
)

// header is what a snapshot answers without being decoded, and the place of what
// it does not keep.
type header struct {
	name, namespace, uid, resourceVersion string
	// managed is where managedFields are, with a comma beside them.
	managed span
}

// span is a part of a text; empty if there is no such part.
type span struct{ from, to int }

// readHeader goes through the text of a mapping, as far as its metadata.
func readHeader(text []byte) header {
	var h header
	c := &cursor{text: text}
	c.space()
	for key := range c.fields() {
		if string(key) == `"metadata"` {
			h.read(c)
			break
		}
	}
	return h
}

func (h *header) read(c *cursor) {
	end := c.at + 1 // of the field before
	for key := range c.fields() {
		switch string(key) {
		case `"name"`:
			h.name = c.plain()
		case `"namespace"`:
			h.namespace = c.plain()
		case `"uid"`:
			h.uid = c.plain()
		case `"resourceVersion"`:
			h.resourceVersion = c.plain()
		case `"managedFields"`:
			c.value()
			h.managed = c.around(end)
		default:
			c.value()
		}
		end = c.at
	}
}

// plain reads a string; of another value, its text.
func (c *cursor) plain() string { return gjson.ParseBytes(c.value()).String() }

// around is the field that the cursor has just read, from the end of the one
// before. One of the commas beside it goes with it.
func (c *cursor) around(before int) span {
	field := span{before, c.at}
	if c.text[before-1] == '{' { // the first one
		rest := cursor{c.text, c.at}
		if rest.space(); rest.text[rest.at] == ',' {
			field.to = rest.at + 1
		}
	}
	return field
}
