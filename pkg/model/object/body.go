package object

import (
	stdjson "encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/recomputed"
)

// Essence is the part of a body that change detection compares: the fields that users
// set, without the data that the system and the operators keep on the object. A nil
// essence means that the object was never handled. Treat it as read-only.
type Essence = map[string]any

// Body is one version of one object for reading. It is immutable, safe for concurrent
// use, and decoded when it is used. It does not keep what is decoded from being freed: that
// takes several times as much memory as the text, and thousands of handlers can wait.
//
// Specification: Arguments, "Body parts".
type Body struct {
	snapshot *Snapshot // nil: only raw is known
	raw      map[string]any
	decoded  recomputed.Value[map[string]any]
}

// NewBody returns a body for a decoded object. It takes ownership of the map: do not
// modify it afterwards. Whole numbers must be int64, and other numbers float64.
func NewBody(raw map[string]any) *Body { return &Body{raw: raw} }

// Snapshot returns the body's version in its compact form, or nil for a body that was
// made from a mapping.
func (b *Body) Snapshot() *Snapshot { return b.snapshot }

// Raw returns the decoded object, which is shared by all readers: do not modify it.
// In handlers, use View and its siblings instead.
func (b *Body) Raw() map[string]any {
	if b.snapshot == nil {
		return b.raw
	}
	return *b.decoded.Get(b.snapshot.decode)
}

// Lookup returns the value of a field; see the function of the same name. The value is
// shared: do not modify it.
func (b *Body) Lookup(path Path) (any, bool) { return Lookup(b.Raw(), path) }

// View returns a view of the entire object.
func (b *Body) View() View { return View{b.Raw()} }

// Spec returns a view of the object's spec, which its users write.
func (b *Body) Spec() View { return b.View().View("spec") }

// Status returns a view of the object's status, which its operators write.
func (b *Body) Status() View { return b.View().View("status") }

// Meta returns a view of the object's metadata.
func (b *Body) Meta() View { return b.View().View("metadata") }

// JSON returns the object as text. The caller owns the result. It fails only for a body
// that was made from values that are not JSON.
func (b *Body) JSON() ([]byte, error) {
	if b.snapshot != nil {
		return append([]byte(nil), b.snapshot.json()...), nil
	}
	return stdjson.Marshal(b.raw)
}

// Decode decodes the object into a typed one, like json.Unmarshal.
func (b *Body) Decode(into any) error { return b.View().Decode(into) }

// Name returns metadata.name.
func (b *Body) Name() string { return b.identity("name", (*Snapshot).GetName) }

// Namespace returns metadata.namespace, which is empty for a cluster-scoped object.
func (b *Body) Namespace() string { return b.identity("namespace", (*Snapshot).GetNamespace) }

// UID returns metadata.uid, which distinguishes a recreated object from its predecessor.
func (b *Body) UID() types.UID {
	return types.UID(b.identity("uid", func(s *Snapshot) string { return string(s.uid) }))
}

// ResourceVersion returns metadata.resourceVersion.
func (b *Body) ResourceVersion() string {
	return b.identity("resourceVersion", (*Snapshot).GetResourceVersion)
}

// identity returns a field that a snapshot has without decoding.
func (b *Body) identity(field string, of func(*Snapshot) string) string {
	if b.snapshot != nil {
		return of(b.snapshot)
	}
	text, _ := b.Meta().String(field)
	return text
}

// APIVersion returns the object's group and version: "kopf.dev/v1".
func (b *Body) APIVersion() string { text, _ := b.View().String("apiVersion"); return text }

// Kind returns the object's kind: "KopfExample".
func (b *Body) Kind() string { text, _ := b.View().String("kind"); return text }

// Generation returns metadata.generation, or 0 if absent.
func (b *Body) Generation() int64 { number, _ := b.Meta().Int64("generation"); return number }

// CreationTimestamp returns metadata.creationTimestamp, or the zero time if absent.
func (b *Body) CreationTimestamp() time.Time {
	text, _ := b.Meta().String("creationTimestamp")
	created, _ := time.Parse(time.RFC3339, text)
	return created
}

// Deleting reports whether the object is marked for deletion.
func (b *Body) Deleting() bool { return b.Meta().Has("deletionTimestamp") }

// Labels returns a copy of metadata.labels, which is never nil.
func (b *Body) Labels() map[string]string { return b.Meta().StringMap("labels") }

// Annotations returns a copy of metadata.annotations, which is never nil.
func (b *Body) Annotations() map[string]string { return b.Meta().StringMap("annotations") }

// Annotation returns one annotation without copying all of them.
func (b *Body) Annotation(key string) (string, bool) { return b.Meta().String("annotations", key) }

// Finalizers returns a copy of metadata.finalizers.
func (b *Body) Finalizers() []string { list, _ := b.Meta().Strings("finalizers"); return list }
