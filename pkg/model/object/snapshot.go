package object

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"unique"

	"github.com/klauspost/compress/s2"
	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is one version of one object in its most compact form: JSON without
// managedFields. It is immutable, safe for concurrent use, and can be stored by
// client-go's informers.
type Snapshot struct {
	kept            []byte                // the JSON; packed if size is not 0
	size            int                   // of the packed JSON
	namespace       unique.Handle[string] // many objects share few namespaces
	name            string
	uid             types.UID
	resourceVersion string
}

var _ runtime.Object = (*Snapshot)(nil)

// ParseSnapshot creates a snapshot from an object's JSON. It copies the bytes. It checks
// only that the text is a JSON object, because the API server validates the rest.
func ParseSnapshot(data []byte) (*Snapshot, error) {
	data = bytes.TrimSpace(data)
	if !gjson.ValidBytes(data) || data[0] != '{' {
		return nil, fmt.Errorf("expected a JSON object, got %q", abbreviate(data))
	}
	header := readHeader(data)
	var room [onStack]byte
	compact, err := appendCompact(room[:0], data, header.managed)
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", header.name, err)
	}
	kept, size := pack(compact)
	name, uid, resourceVersion := header.identity()
	return &Snapshot{
		kept:            kept,
		size:            size,
		namespace:       unique.Make(string(header.namespace)),
		name:            name,
		uid:             types.UID(uid),
		resourceVersion: resourceVersion,
	}, nil
}

// onStack is the size of the texts that need no memory on the heap while they are converted: that of most objects.
const onStack = 4 << 10

// appendCompact appends the JSON without the managed fields: no handler needs them, and
// they are often the largest part of an object.
func appendCompact(text, data []byte, managed span) ([]byte, error) {
	text = slices.Grow(text, len(data)-(managed.to-managed.from))
	text = append(append(text, data[:managed.from]...), data[managed.to:]...)
	if bytes.IndexByte(text, '\n') < 0 {
		return text, nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return nil, err
	}
	return append(text[:0], out.Bytes()...), nil
}

func abbreviate(data []byte) []byte {
	const limit = 40
	if len(data) > limit {
		return append(bytes.Clone(data[:limit]), "..."...)
	}
	return data
}

// Body returns a new body for reading the snapshot, so that decoded data is freed with
// its reader.
func (s *Snapshot) Body() *Body { return &Body{snapshot: s} }

// pack returns a copy of the text, in a third of the memory if it is that of a handled object: it repeats itself, because the
// annotation with the last handled state has the spec again. Reading it takes some microseconds longer. A better compression
// would take ten times as long. The size is 0 if packing does not make the text smaller.
func pack(text []byte) (kept []byte, size int) {
	var room [onStack]byte
	packed := s2.Encode(room[:], text)
	if len(packed) >= len(text) {
		return bytes.Clone(text), 0
	}
	return bytes.Clone(packed), len(text)
}

// json returns the text of the object, which is read-only.
func (s *Snapshot) json() []byte {
	if s.size == 0 {
		return s.kept
	}
	text, _ := s2.Decode(make([]byte, s.size), s.kept) // cannot fail: pack has written it
	return text
}

// decode returns the decoded object, which shares nothing with the text.
func (s *Snapshot) decode() map[string]any {
	if s.size == 0 {
		return decode(s.kept, nil)
	}
	var room [onStack]byte
	text, _ := s2.Decode(room[:], s.kept)
	return decode(text, nil)
}

// Size returns the size of the object's JSON in bytes.
func (s *Snapshot) Size() int { return cmp.Or(s.size, len(s.kept)) }

// GetObjectKind returns a copy of apiVersion and kind, as runtime.Object requires.
func (s *Snapshot) GetObjectKind() schema.ObjectKind {
	return &metav1.TypeMeta{APIVersion: s.text("apiVersion"), Kind: s.text("kind")}
}

// DeepCopyObject returns the snapshot itself, because it is immutable.
func (s *Snapshot) DeepCopyObject() runtime.Object { return s }

func (s *Snapshot) text(path string) string { return gjson.GetBytes(s.json(), path).String() }
