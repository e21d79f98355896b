package object

import (
	"bytes"

	"github.com/tidwall/gjson"
)

// header contains the fields that a snapshot provides without decoding, and the location
// of the field that it removes. The texts are parts of that of the object.
type header struct {
	name, namespace, uid, resourceVersion []byte
	// managed is the location of managedFields, including an adjacent comma.
	managed span
}

// span is a part of a text. It is empty if the text has no such part.
type span struct{ from, to int }

// readHeader reads a mapping up to the end of its metadata.
func readHeader(text []byte) header {
	var h header
	c := &cursor{text: text}
	c.space()
	for key := range c.fields() {
		if string(c.in(key)) == `"metadata"` {
			h.read(c)
			break
		}
	}
	return h
}

func (h *header) read(c *cursor) {
	end := c.at + 1 // of the previous field
	for key := range c.fields() {
		switch string(c.in(key)) {
		case `"name"`:
			h.name = c.scalarText()
		case `"namespace"`:
			h.namespace = c.scalarText()
		case `"uid"`:
			h.uid = c.scalarText()
		case `"resourceVersion"`:
			h.resourceVersion = c.scalarText()
		case `"managedFields"`:
			c.value()
			h.managed = c.fieldSpan(end)
		default:
			c.value()
		}
		end = c.at
	}
}

// identity returns the texts that differ from object to object, in one piece of memory: there are many objects, and the
// garbage collector visits each piece.
func (h *header) identity() (name, uid, resourceVersion string) {
	var room [256]byte
	text := append(append(append(room[:0], h.name...), h.uid...), h.resourceVersion...)
	all := string(text)
	toUID := len(h.name)
	toVersion := toUID + len(h.uid)
	return all[:toUID], all[toUID:toVersion], all[toVersion:]
}

// scalarText reads a string, or the text of another value.
func (c *cursor) scalarText() []byte {
	text := c.value()
	if text[0] == '"' && bytes.IndexByte(text, '\\') < 0 {
		return text[1 : len(text)-1]
	}
	return []byte(gjson.ParseBytes(text).String())
}

// fieldSpan returns the span of the field that the cursor has just read, beginning at the
// end of the previous field. It includes one adjacent comma.
func (c *cursor) fieldSpan(before int) span {
	field := span{before, c.at}
	if c.text[before-1] == '{' { // the first field
		rest := cursor{c.text, c.at}
		rest.space()
		if rest.text[rest.at] == ',' {
			field.to = rest.at + 1
		}
	}
	return field
}
