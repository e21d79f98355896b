package object

import (
	stdjson "encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Essence is the part of a body that change detection looks at: what people
// want of the object, without what the system and the operators keep on it.
// A nil essence is an object that was never handled. Read only.
type Essence = map[string]any

// Body is one version of one object, open for reading. It is immutable, safe
// for concurrent use, and decoded on first use.
//
// Specification: Arguments, "Body parts".
type Body struct {
	snapshot *Snapshot
	once     sync.Once
	raw      map[string]any
}

// NewBody makes a body of a decoded object. It takes the map over: nobody may
// change it afterwards. Whole numbers are int64, other ones float64.
func NewBody(raw map[string]any) *Body {
	b := &Body{raw: raw}
	b.once.Do(func() {})
	return b
}

// Snapshot is the version in the form in which it can be kept; nil for a body that
// was made of a mapping.
func (b *Body) Snapshot() *Snapshot { return b.snapshot }

// Raw is the decoded object itself, shared by all readers: never change it.
// Handlers use View and its siblings instead.
func (b *Body) Raw() map[string]any {
	b.once.Do(func() { b.raw = decode(b.snapshot.json()) })
	return b.raw
}

// Lookup finds a field; see the function of the same name. The value is shared:
// read only.
func (b *Body) Lookup(path Path) (any, bool) { return Lookup(b.Raw(), path) }

// View is the whole object.
func (b *Body) View() View { return View{b.Raw()} }

// Spec is the part of the object that its users write.
func (b *Body) Spec() View { return b.View().View("spec") }

// Status is the part of the object that its operators write.
func (b *Body) Status() View { return b.View().View("status") }

// Meta is the object's metadata.
func (b *Body) Meta() View { return b.View().View("metadata") }

// JSON is the object as text; the caller may keep and change it. It fails only
// for a body that was made of something that is not JSON.
func (b *Body) JSON() ([]byte, error) {
	if b.snapshot != nil {
		return append([]byte(nil), b.snapshot.json()...), nil
	}
	return stdjson.Marshal(b.raw)
}

// Decode writes the object into a typed one, as json.Unmarshal does.
func (b *Body) Decode(into any) error { return b.View().Decode(into) }

// Name is metadata.name.
func (b *Body) Name() string { return b.identity("name", (*Snapshot).GetName) }

// Namespace is metadata.namespace; empty for a cluster-scoped object.
func (b *Body) Namespace() string { return b.identity("namespace", (*Snapshot).GetNamespace) }

// UID is metadata.uid: it tells a re-created object from its predecessor.
func (b *Body) UID() types.UID {
	return types.UID(b.identity("uid", func(s *Snapshot) string { return string(s.uid) }))
}

// ResourceVersion is metadata.resourceVersion.
func (b *Body) ResourceVersion() string {
	return b.identity("resourceVersion", (*Snapshot).GetResourceVersion)
}

// identity reads a field that a snapshot knows without being decoded.
func (b *Body) identity(field string, of func(*Snapshot) string) string {
	if b.snapshot != nil {
		return of(b.snapshot)
	}
	text, _ := b.Meta().String(field)
	return text
}

// APIVersion is the object's group and version: "kopf.dev/v1".
func (b *Body) APIVersion() string { text, _ := b.View().String("apiVersion"); return text }

// Kind is the object's kind: "KopfExample".
func (b *Body) Kind() string { text, _ := b.View().String("kind"); return text }

// Generation is metadata.generation; 0 if absent.
func (b *Body) Generation() int64 { number, _ := b.Meta().Int64("generation"); return number }

// CreationTimestamp is metadata.creationTimestamp; zero if absent.
func (b *Body) CreationTimestamp() time.Time {
	text, _ := b.Meta().String("creationTimestamp")
	created, _ := time.Parse(time.RFC3339, text)
	return created
}

// Deleting reports whether the object is marked for deletion.
func (b *Body) Deleting() bool { return b.Meta().Has("deletionTimestamp") }

// Labels are metadata.labels, never nil; the caller owns the map.
func (b *Body) Labels() map[string]string { return b.Meta().StringMap("labels") }

// Annotations are metadata.annotations, never nil; the caller owns the map.
func (b *Body) Annotations() map[string]string { return b.Meta().StringMap("annotations") }

// Annotation is one annotation, without a copy of all of them.
func (b *Body) Annotation(key string) (string, bool) { return b.Meta().String("annotations", key) }

// Finalizers are metadata.finalizers; the caller owns the slice.
func (b *Body) Finalizers() []string { list, _ := b.Meta().Strings("finalizers"); return list }
