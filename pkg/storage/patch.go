package storage

import (
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Patch is a JSON merge patch (RFC 7386) under construction: a null removes a field.
// It is not safe for concurrent use.
type Patch map[string]any

// Set writes the value at the path; nil removes the field from the object. Values on
// the way that are not mappings are replaced by mappings. An empty path does nothing.
func (p Patch) Set(path object.Path, value any) {
	if len(path) == 0 {
		return
	}
	into := map[string]any(p)
	for _, key := range path[:len(path)-1] {
		next, ok := into[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			into[key] = next
		}
		into = next
	}
	into[path[len(path)-1]] = value
}

// Drop takes a field out of the patch, so that the object keeps its value. It also
// drops the mappings that become empty.
func (p Patch) Drop(path object.Path) {
	if len(path) == 0 {
		return
	}
	if len(path) == 1 {
		delete(p, path[0])
		return
	}
	inner, ok := p[path[0]].(map[string]any)
	if !ok {
		return
	}
	Patch(inner).Drop(path[1:])
	if len(inner) == 0 {
		delete(p, path[0])
	}
}

// put writes the text unless the object already has it.
func (p Patch) put(path object.Path, body *object.Body, text string) {
	if present, _ := body.Lookup(path); present == any(text) {
		p.Drop(path)
		return
	}
	p.Set(path, text)
}

// remove writes a null if the object has the field. Otherwise, it only drops a pending
// write of the field, so that removing an absent field costs no write.
func (p Patch) remove(path object.Path, body *object.Body) {
	if _, present := body.Lookup(path); present {
		p.Set(path, nil)
		return
	}
	p.Drop(path)
}
