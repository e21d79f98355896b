package metacontroller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// orphan is an object of the kind of children that no one controls.
type orphan struct {
	types.NamespacedName

	kind   schema.GroupVersionKind
	uid    types.UID
	labels labels.Set
}

// orphans are those that can be adopted. They are safe for concurrent use.
type orphans struct {
	// index has them by their namespaces. It is nil for decorators, which adopt nothing.
	index *kopf.Index[string, orphan]

	mu sync.Mutex
	// latest are those that may not be in the index yet: parents are woken by the function that fills the index, and can look
	// before it has returned.
	latest map[types.UID]indexed
	pruned time.Time
}

// indexed is an orphan, and when it was seen.
type indexed struct {
	orphan

	at time.Time
}

// indexTime is after which time an orphan is in the index.
const indexTime = 10 * time.Second

// add adds an orphan until it is in the index.
func (os *orphans) add(o orphan) {
	os.mu.Lock()
	defer os.mu.Unlock()
	now := time.Now()
	if now.Sub(os.pruned) > indexTime {
		maps.DeleteFunc(os.latest, func(_ types.UID, known indexed) bool { return now.Sub(known.at) > indexTime })
		os.pruned = now
	}
	if os.latest == nil {
		os.latest = map[types.UID]indexed{}
	}
	os.latest[o.uid] = indexed{o, now}
}

// remove removes an object that is no orphan anymore. The index follows.
func (os *orphans) remove(uid types.UID) {
	os.mu.Lock()
	defer os.mu.Unlock()
	delete(os.latest, uid)
}

// matching returns the orphans that a selector selects in a namespace, or in all if it is empty.
func (os *orphans) matching(namespace string, selector labels.Selector) []orphan {
	found := map[types.UID]orphan{}
	add := func(all ...orphan) {
		for _, o := range all {
			if selector.Matches(o.labels) {
				found[o.uid] = o
			}
		}
	}
	switch {
	case os.index == nil:
	case namespace == "":
		for _, all := range os.index.All() {
			add(all...)
		}
	default:
		add(os.index.Get(namespace)...)
	}
	os.mu.Lock()
	defer os.mu.Unlock()
	for _, o := range os.latest {
		if time.Since(o.at) < indexTime && (namespace == "" || namespace == o.Namespace) {
			add(o.orphan)
		}
	}
	return slices.Collect(maps.Values(found))
}

// indexOrphan keeps an object that can be adopted, and wakes the parents that can adopt it.
func (c *Controller) indexOrphan(_ context.Context, i *kopf.Indexed) (map[string]orphan, error) {
	obj := &unstructured.Unstructured{Object: i.Body().Raw()}
	if metav1.GetControllerOfNoCopy(obj) != nil || i.Body().Deleting() {
		c.orphans.remove(i.UID())
		return map[string]orphan{}, nil
	}
	o := orphan{types.NamespacedName{Namespace: i.Namespace(), Name: i.Name()}, i.Resource().GVK(), i.UID(), i.Labels()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.parents) > 0 { // those that come later look later
		c.orphans.add(o)
	}
	for _, p := range c.parents {
		if p.canAdopt(o) {
			p.wakeUp()
		}
	}
	return map[string]orphan{i.Namespace(): o}, nil
}
