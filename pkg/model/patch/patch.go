package patch

import (
	"errors"
	"slices"
	"sync"
)

// Patch is what a handler wants to change on its object. The zero Patch is empty
// and ready for use. It is safe for concurrent use, so that a handler may fill it
// from several goroutines; it must not be copied.
//
// Fields are given as separate keys, from the outside in, as the accessors of
// object.View take them; keys may have dots. All methods accept any value: what
// cannot be expressed as JSON is reported by Resolve, and fails the handler then.
type Patch struct {
	mu         sync.Mutex
	changes    []change
	transforms []Transform
}

// Set makes a field exactly this value. A mapping replaces the present one as a
// whole; Merge keeps its other keys. A nil value removes the field. The value is
// copied. Mappings on the way to the field are created.
func (p *Patch) Set(value any, fields ...string) {
	if len(fields) == 0 {
		p.record(change{err: &FieldError{Err: errors.New("name a field, an object cannot be replaced as a whole")}})
		return
	}
	p.record(newChange(slices.Clone(fields), value))
}

// Remove makes a field absent; nothing happens if it is. It equals Set(nil, fields...).
func (p *Patch) Remove(fields ...string) { p.Set(nil, fields...) }

// Merge changes the fields that the mapping has, at any depth, and keeps all
// others: a null removes its field, and everything but a mapping, such as a list,
// replaces the present value. The mapping is copied.
//
// This is what Kopf does with a patch.
func (p *Patch) Merge(values map[string]any) {
	p.record(newChange(nil, values))
}

// SetLabel adds or changes a label. It equals Set(value, "metadata", "labels", key).
func (p *Patch) SetLabel(key, value string) { p.Set(value, "metadata", "labels", key) }

// SetAnnotation adds or changes an annotation. It equals
// Set(value, "metadata", "annotations", key).
func (p *Patch) SetAnnotation(key, value string) { p.Set(value, "metadata", "annotations", key) }

// Apply changes the object by a function of its present state; see Transform.
// Transformations run after all values are set, in the order in which they were
// added, each on the result of the one before.
func (p *Patch) Apply(transform Transform) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.transforms = append(p.transforms, transform)
}

// Add appends everything that the other patch has now: where both change the
// same field, the other one wins. The other patch stays as it is; nil is empty.
func (p *Patch) Add(other *Patch) {
	if other == nil {
		return
	}
	changes, transforms := other.snapshot()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes = append(p.changes, changes...)
	p.transforms = append(p.transforms, transforms...)
}

// Empty reports whether nothing was asked of the patch. A patch that is not empty
// may still change nothing.
func (p *Patch) Empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.changes) == 0 && len(p.transforms) == 0
}

func (p *Patch) record(c change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(c.path) > 0 {
		// What is set over and over again, by a daemon say, must not pile up.
		p.changes = slices.DeleteFunc(p.changes, func(earlier change) bool {
			return len(earlier.path) > 0 && earlier.path.HasPrefix(c.path)
		})
	}
	p.changes = append(p.changes, c)
}

func (p *Patch) snapshot() ([]change, []Transform) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.changes), slices.Clone(p.transforms)
}
