package object

import (
	"encoding/binary"
	"math/bits"
)

// The text of an object at rest is full of repetitions: the spec is there again
// in the annotation with the last handled state. So it is kept in a packed form,
// of which nothing leaves the process:
//
//	text:     (literals | match)*
//	literals: one byte 0…127, their number less one; then themselves
//	match:    one byte 128…255, its length less minMatch and plus 128; then two
//	          bytes, how far back in the text it begins, little endian
//
// It takes a few microseconds for an object of some kilobytes, and halves it. A
// better compression is possible, and costs ten times as much.
const (
	minMatch = 4
	maxMatch = minMatch + 127
	maxRun   = 128
	window   = 1<<16 - 1 // how far back a match can be
	hashBits = 12
)

// packer packs one text.
type packer struct {
	text   []byte
	packed []byte
	// latest is where in the text four bytes with this hash were seen last.
	latest [1 << hashBits]int32
}

// pack appends the packed text.
func pack(packed, text []byte) []byte {
	p := packer{text: text, packed: packed}
	written := 0
	for at := 0; at+minMatch <= len(text); {
		from, length := p.match(at)
		if length == 0 {
			at += 1 + (at-written)>>6 // faster through what does not repeat itself
			continue
		}
		p.literals(text[written:at])
		p.packed = append(p.packed, byte(128+length-minMatch), byte(at-from), byte((at-from)>>8))
		at += length
		written = at
	}
	p.literals(text[written:])
	return p.packed
}

// match finds an earlier occurrence of what is at the position.
func (p *packer) match(at int) (from, length int) {
	word := binary.LittleEndian.Uint32(p.text[at:])
	slot := &p.latest[word*2654435761>>(32-hashBits)] // by the golden ratio
	from = int(*slot) - 1
	*slot = int32(at) + 1
	if from < 0 || at-from > window || binary.LittleEndian.Uint32(p.text[from:]) != word {
		return 0, 0
	}
	return from, common(p.text[from:], p.text[at:])
}

// common is how many bytes the texts have in common, up to maxMatch.
func common(a, b []byte) int {
	limit := min(len(b), maxMatch)
	n := minMatch
	for ; n+8 <= limit; n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < limit && a[n] == b[n] {
		n++
	}
	return n
}

func (p *packer) literals(run []byte) {
	for len(run) > 0 {
		part := run[:min(len(run), maxRun)]
		p.packed = append(append(p.packed, byte(len(part)-1)), part...)
		run = run[len(part):]
	}
}

// unpack is the text of so many bytes that was packed.
func unpack(packed []byte, size int) []byte {
	text := make([]byte, 0, size)
	for len(packed) > 0 {
		head := int(packed[0])
		if head < 128 {
			text = append(text, packed[1:head+2]...)
			packed = packed[head+2:]
			continue
		}
		from := len(text) - int(binary.LittleEndian.Uint16(packed[1:]))
		length := head - 128 + minMatch
		packed = packed[3:]
		if from+length <= len(text) {
			text = append(text, text[from:from+length]...)
			continue
		}
		for range length { // it repeats itself
			text = append(text, text[from])
			from++
		}
	}
	return text
}
