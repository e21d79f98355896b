package contention

import (
	"encoding/json"
	"hash/maphash"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// maxFields is the number of fields of one object whose values are kept. A writer of
// more fields within seconds has other problems.
const maxFields = 200

// fieldHashes maps the ids of fields to the hashes of their values.
type fieldHashes map[uint64]uint64

// seed makes the hashes of this process, which are never stored.
var seed = maphash.MakeSeed()

// field is a field that a merge patch writes. Its value is nil if the field is removed, and a
// mapping if only fields below it are written.
type field struct {
	path  object.Path // its memory belongs to the next field afterwards
	id    uint64      // the hash of the path
	value any
}

// walk visits a field, and then those below it.
func (f field) walk(visit func(f field)) {
	visit(f)
	mapping, _ := f.value.(map[string]any)
	for key, value := range mapping {
		below := field{append(f.path, key), maphash.Comparable(seed, step{f.id, key}), value}
		below.walk(visit)
	}
}

// step is the last step of a path.
type step struct {
	above uint64
	key   string
}

func (f field) isMapping() bool {
	_, mapping := f.value.(map[string]any)
	return mapping
}

// compare compares a merge patch with what was written last. Overwritten are the fields that no
// longer have that value. Removed are the fields below those that the patch removes or replaces:
// the operator gives them up, and can write them again.
func (h fieldHashes) compare(body, merge map[string]any) (overwritten []object.Path, removed []uint64) {
	if len(h) == 0 {
		return nil, nil
	}
	field{value: merge}.walk(func(f field) {
		if f.isMapping() {
			return
		}
		stored, exists := object.Lookup(body, f.path)
		if last, known := h[f.id]; known && f.isOverwritten(stored, exists, last) {
			overwritten = append(overwritten, slices.Clone(f.path))
		}
		former := field{path: f.path, id: f.id, value: stored}
		if former.isMapping() {
			former.walk(func(f field) { removed = append(removed, f.id) })
		}
	})
	slices.SortFunc(overwritten, slices.Compare)
	return overwritten, removed
}

// isOverwritten reports whether another writer has changed the field, and writing it
// reverts that.
func (f field) isOverwritten(stored any, exists bool, last uint64) bool {
	_, list := f.value.([]any)
	return last != hashValue(stored, exists) && (!list || last == hashValue(f.value, true))
}

// forget forgets fields.
func (h fieldHashes) forget(ids []uint64) {
	for _, id := range ids {
		delete(h, id)
	}
}

// updated returns the hashes after a write. A mapping that the operator has removed is there again
// when the operator writes below it.
func (h fieldHashes) updated(merge map[string]any, accepted func(object.Path, any) bool) fieldHashes {
	if h == nil || len(h) > maxFields {
		h = fieldHashes{}
	}
	field{value: merge}.walk(func(f field) {
		delete(h, f.id)
		if !f.isMapping() && accepted(f.path, f.value) {
			h[f.id] = hashValue(f.value, f.value != nil)
		}
	})
	return h
}

// hashValue returns the hash of a value, which may be absent.
func hashValue(value any, exists bool) uint64 {
	if !exists {
		return 0
	}
	if text, ok := value.(string); ok {
		return maphash.String(seed, text)
	}
	text, _ := json.Marshal(value) // never fails: the value comes from JSON
	return maphash.Bytes(seed, text)
}
