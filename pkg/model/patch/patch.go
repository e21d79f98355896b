package patch

import (
	"errors"
	"slices"
	"sync"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Patch collects the changes that a handler requests for its object. The zero Patch is
// empty and ready for use. It is safe for concurrent use, so a handler can fill it from
// several goroutines. Do not copy it.
//
// A field is one text, "status.phase", or its keys, from the outermost to the innermost, if they contain
// dots: see object.PathOf. A mistake in it fails the handler. All methods accept any value: if a
// value cannot be expressed as JSON, Resolve returns an error, which fails the handler.
type Patch struct {
	mu         sync.Mutex
	changes    []change
	transforms []Transform
}

// Set sets a field to exactly this value. A mapping replaces the current one as a whole;
// use Merge to keep its other keys. A nil value removes the field. Set copies the value,
// and creates the mappings above the field.
func (p *Patch) Set(value any, fields ...string) {
	if len(fields) == 0 {
		p.record(change{err: &FieldError{Err: errors.New("an object cannot be replaced as a whole: name a field")}})
		return
	}
	path, err := object.PathOf(fields...)
	if err != nil {
		p.record(change{err: &FieldError{Field: slices.Clone(fields), Err: err}})
		return
	}
	p.record(newChange(path, value))
}

// Remove removes a field if it exists. It is the same as Set(nil, fields...).
func (p *Patch) Remove(fields ...string) { p.Set(nil, fields...) }

// Merge changes the fields of the mapping, at any depth, and keeps all others. A null
// removes its field. Values other than mappings, such as lists, replace the current
// value. Merge copies the mapping.
//
// Kopf applies patches in this way.
func (p *Patch) Merge(values map[string]any) {
	p.record(newChange(nil, values))
}

// SetLabel adds or changes a label. It is the same as
// Set(value, "metadata", "labels", key).
func (p *Patch) SetLabel(key, value string) { p.Set(value, "metadata", "labels", key) }

// SetAnnotation adds or changes an annotation. It is the same as
// Set(value, "metadata", "annotations", key).
func (p *Patch) SetAnnotation(key, value string) { p.Set(value, "metadata", "annotations", key) }

// Apply changes the object with a function of its current state; see Transform.
// Transformations run after all values are set, in the order in which they were added.
// Each gets the result of the previous one.
func (p *Patch) Apply(transform Transform) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.transforms = append(p.transforms, transform)
}

// Add appends the current changes of the other patch. If both change the same field, the
// other patch wins. Add does not modify the other patch, which can be nil.
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

// Take returns the current requests as another patch, and empties this one.
func (p *Patch) Take() *Patch {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := &Patch{changes: p.changes, transforms: p.transforms}
	p.changes = nil
	p.transforms = nil
	return taken
}

// Empty reports whether the patch contains no requests. A patch that is not empty may
// still change nothing.
func (p *Patch) Empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.changes) == 0 && len(p.transforms) == 0
}

func (p *Patch) record(c change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(c.path) > 0 {
		// Repeated changes of a field, for example by a daemon, must not accumulate.
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
