package watch

import (
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nameStream watches the metadata of the objects of a cluster-scoped resource that determines what is
// watched: the definitions, or the namespaces.
type nameStream = stream[*metav1.PartialObjectMetadata, *names]

// names has the names of objects, and reports that something has changed. The stream changes it; others
// can read it.
type names struct {
	changed func()
	// wants says which objects matter.
	wants func(*metav1.PartialObjectMetadata) bool

	mu       sync.Mutex
	versions map[string]string // by name
}

var _ store[*metav1.PartialObjectMetadata] = (*names)(nil)

func newNames(wants func(*metav1.PartialObjectMetadata) bool, changed func()) *names {
	return &names{changed: changed, wants: wants, versions: map[string]string{}}
}

// hasNewer returns false: the next list shows another history, and until then, no version matters.
func (n *names) hasNewer(*metav1.PartialObjectMetadata) bool { return false }

func (n *names) put(now *metav1.PartialObjectMetadata) {
	if !n.wants(now) {
		n.remove(now)
		return
	}
	n.mu.Lock()
	n.versions[now.Name] = now.ResourceVersion
	n.mu.Unlock()
	n.changed()
}

func (n *names) remove(last *metav1.PartialObjectMetadata) {
	n.mu.Lock()
	_, known := n.versions[last.Name]
	delete(n.versions, last.Name)
	n.mu.Unlock()
	if known {
		n.changed()
	}
}

// replace reports nothing for another list of the same versions, unless they belong to another history.
func (n *names) replace(all []*metav1.PartialObjectMetadata, _ string, another bool) {
	now := make(map[string]string, len(all))
	for _, object := range all {
		if n.wants(object) {
			now[object.Name] = object.ResourceVersion
		}
	}
	n.mu.Lock()
	same := maps.Equal(n.versions, now)
	n.versions = now
	n.mu.Unlock()
	if !same || another {
		n.changed()
	}
}

// has reports whether there is an object of the name.
func (n *names) has(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, found := n.versions[name]
	return found
}

// sorted returns the names.
func (n *names) sorted() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.versions))
}
