package storage

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/wire"
)

// tree is an essence while it is being converted to an envelope.
type tree struct {
	hasher hasher
	root   *node
}

// node is one mapping or leaf of the essence.
type node struct {
	path     object.Path
	value    any              // in the essence
	hidden   bool             // only a digest of the value is stored
	children map[string]*node // set for a mapping that is not hidden entirely
	frame    int              // bytes of its key in the envelope
	size     int              // bytes of its value in the envelope, rounded up
}

func newTree(hasher hasher, policy policy, essence object.Essence) *tree {
	t := &tree{hasher: hasher, root: &node{value: essence}}
	t.addChildren(t.root, policy, essence)
	return t
}

func (t *tree) addChildren(n *node, policy policy, mapping map[string]any) {
	n.children = make(map[string]*node, len(mapping))
	for key, value := range mapping {
		inner := &node{path: child(n.path, key), value: value, frame: jsonLength(key) + len(`:,`)}
		n.children[key] = inner
		if nested, ok := value.(map[string]any); ok && len(nested) > 0 {
			t.addChildren(inner, policy, nested)
			continue
		}
		inner.size = jsonLength(value)
		if policy.mustHash(inner) {
			inner.hide()
		}
	}
	n.measure()
}

// hide replaces a leaf or an entire mapping by one digest.
func (n *node) hide() {
	n.hidden = true
	n.children = nil
	n.size = digestLength + len(`""`)
}

func (n *node) measure() {
	n.size = len(`{}`)
	for _, inner := range n.children {
		n.size += inner.sizeWithKey()
	}
}

// sizeWithKey returns the node's size including its key. The key of a mapping counts twice:
// it may appear among the known values and among the hashes.
func (n *node) sizeWithKey() int {
	if n.children != nil {
		return n.size + 2*n.frame + len(`{}`)
	}
	return n.size + n.frame
}

// fit hashes as few mappings as possible until the envelope fits into the limit in
// bytes. The top level always remains, because an essence is a mapping.
func (t *tree) fit(limit int) {
	t.shrink(t.root, limit-len(`{"kopf-hashed":1,"known":{},"hashed":{}}`))
}

// shrink distributes the room among the children, the smallest ones first. The room
// that they do not use is left for the others, so that a large field does not hide
// small ones.
func (t *tree) shrink(n *node, room int) {
	if n.size <= room || n.children == nil {
		return
	}
	left := room - len(`{}`)
	keys := slices.SortedFunc(maps.Keys(n.children), func(a, b string) int {
		return cmp.Or(cmp.Compare(n.children[a].sizeWithKey(), n.children[b].sizeWithKey()), cmp.Compare(a, b))
	})
	for i, key := range keys {
		inner := n.children[key]
		share := left / (len(keys) - i)
		t.shrink(inner, share-(inner.sizeWithKey()-inner.size))
		left -= inner.sizeWithKey()
	}
	n.measure()
	if left < 0 && n != t.root {
		n.hide()
	}
}

// split separates the known values of a node from the digests.
func (t *tree) split(n *node) (known, hashed map[string]any) {
	known = map[string]any{}
	hashed = map[string]any{}
	for key, inner := range n.children {
		switch {
		case inner.hidden:
			hashed[key] = t.hasher.digest(inner.path, inner.value)
		case inner.children == nil:
			known[key] = inner.value
		default:
			innerKnown, innerHashed := t.split(inner)
			if len(innerKnown) > 0 {
				known[key] = innerKnown
			}
			if len(innerHashed) > 0 {
				hashed[key] = innerHashed
			}
		}
	}
	return known, hashed
}

func jsonLength(value any) int {
	text, err := wire.Compact(value)
	if err != nil {
		return 0 // encoding the whole fails later, and reports the reason
	}
	return len(text)
}
