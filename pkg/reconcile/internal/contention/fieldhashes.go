package contention

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// maxFields is the number of fields of one object whose values are kept. A writer of
// more fields within seconds has other problems.
const maxFields = 200

// fieldHashes maps the hashes of fields to the hashes of their values.
type fieldHashes map[uint64]uint64

// field is a field that a merge patch writes; its value is nil if the field is
// removed.
type field struct {
	path  object.Path
	value any
}

// fieldsOf returns the fields that a merge patch writes, in order.
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

// overwritten returns the fields of a merge patch that no longer have the value that
// was written last.
func (h fieldHashes) overwritten(body, merge map[string]any) []object.Path {
	if len(h) == 0 {
		return nil
	}
	var fields []object.Path
	for _, f := range fieldsOf(nil, merge) {
		if last, known := h[hashPath(f.path)]; known && f.isOverwritten(body, last) {
			fields = append(fields, f.path)
		}
	}
	return fields
}

// isOverwritten reports whether another writer has changed the field, and writing it
// reverts that.
func (f field) isOverwritten(body map[string]any, last uint64) bool {
	_, list := f.value.([]any)
	return last != hashValue(object.Lookup(body, f.path)) && (!list || last == hashValue(f.value, true))
}

// removed returns the hashes of the fields below those that a merge patch removes or replaces: the
// operator gives them up, and can write them again.
func (h fieldHashes) removed(body, merge map[string]any) (hashes []uint64) {
	if len(h) == 0 {
		return nil
	}
	for _, f := range fieldsOf(nil, merge) {
		former, _ := object.Lookup(body, f.path)
		if mapping, ok := former.(map[string]any); ok {
			for _, below := range fieldsOf(f.path, mapping) {
				hashes = append(hashes, hashPath(below.path))
			}
		}
	}
	return hashes
}

// forget forgets fields.
func (h fieldHashes) forget(hashes []uint64) {
	for _, hash := range hashes {
		delete(h, hash)
	}
}

// updated returns the hashes after a write. A mapping that the operator has removed is there again
// when the operator writes below it.
func (h fieldHashes) updated(merge map[string]any, accepted func(object.Path, any) bool) fieldHashes {
	if h == nil || len(h) > maxFields {
		h = fieldHashes{}
	}
	for _, f := range fieldsOf(nil, merge) {
		for depth := range f.path {
			delete(h, hashPath(f.path[:depth]))
		}
		if delete(h, hashPath(f.path)); accepted(f.path, f.value) {
			h[hashPath(f.path)] = hashValue(f.value, f.value != nil)
		}
	}
	return h
}

// hashPath returns the hash of a path.
func hashPath(path object.Path) uint64 {
	sum := fnv.New64a()
	for _, key := range path {
		_, _ = sum.Write([]byte(key)) // never fails
		_, _ = sum.Write([]byte{0})
	}
	return sum.Sum64()
}

// hashValue returns the hash of a value, which may be absent.
func hashValue(value any, exists bool) uint64 {
	sum := fnv.New64a()
	if exists {
		text, _ := json.Marshal(value) // never fails: the value comes from JSON
		_, _ = sum.Write(text)
	}
	return sum.Sum64()
}
