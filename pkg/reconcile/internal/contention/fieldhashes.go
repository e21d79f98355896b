package contention

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// maxMarks is for how many fields of one object is kept what was written. Who writes
// more of them in a few seconds has other worries.
const maxFields = 200

// marks are the values of fields, both as hashes.
type fieldHashes map[uint64]uint64

// leaf is a field that a merge patch writes; a nil value is for one that goes.
type field struct {
	path  object.Path
	value any
}

// leaves are the fields that a merge patch writes, in order.
func fieldsOf(above object.Path, merge map[string]any) []field {
	var all []field
	for _, key := range slices.Sorted(maps.Keys(merge)) {
		path := append(slices.Clone(above), key)
		if inner, mapping := merge[key].(map[string]any); mapping {
			all = append(all, fieldsOf(path, inner)...)
		} else {
			all = append(all, field{path, merge[key]})
		}
	}
	return all
}

// restored are the fields of a merge patch that do not have the value any more that
// is marked.
func (m fieldHashes) overwritten(body, merge map[string]any) []object.Path {
	if len(m) == 0 {
		return nil
	}
	var fields []object.Path
	for _, l := range fieldsOf(nil, merge) {
		if mark, marked := m[hashPath(l.path)]; marked && l.isOverwritten(body, mark) {
			fields = append(fields, l.path)
		}
	}
	return fields
}

// restores tells whether somebody else has changed the field, and that is undone.
func (l field) isOverwritten(body map[string]any, mark uint64) bool {
	_, list := l.value.([]any)
	return mark != hashValue(object.Lookup(body, l.path)) && (!list || mark == hashValue(l.value, true))
}

// with are the marks after a write.
func (m fieldHashes) updated(merge map[string]any, taken func(object.Path, any) bool) fieldHashes {
	if m == nil || len(m) > maxFields {
		m = fieldHashes{}
	}
	for _, l := range fieldsOf(nil, merge) {
		if delete(m, hashPath(l.path)); taken(l.path, l.value) {
			m[hashPath(l.path)] = hashValue(l.value, l.value != nil)
		}
	}
	return m
}

func hashPath(path object.Path) uint64 {
	sum := fnv.New64a()
	for _, key := range path {
		_, _ = sum.Write([]byte(key)) // never fails
		_, _ = sum.Write([]byte{0})
	}
	return sum.Sum64()
}

// digest is the hash of a value, be it there or not.
func hashValue(value any, exists bool) uint64 {
	sum := fnv.New64a()
	if exists {
		text, _ := json.Marshal(value) // what comes from JSON goes to JSON
		_, _ = sum.Write(text)
	}
	return sum.Sum64()
}
