package object

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
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
	compact, err := compactJSON(data, header.managed)
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", header.name, err)
	}
	return &Snapshot{
		kept:            compact,
		namespace:       unique.Make(header.namespace),
		name:            header.name,
		uid:             types.UID(header.uid),
		resourceVersion: header.resourceVersion,
	}, nil
}

// compactJSON returns a copy of the text without the managed fields: no handler needs
// them, and they are often the largest part of an object.
func compactJSON(data []byte, managed span) ([]byte, error) {
	compact := make([]byte, 0, len(data)-(managed.to-managed.from))
	compact = append(append(compact, data[:managed.from]...), data[managed.to:]...)
	if bytes.IndexByte(compact, '\n') < 0 {
		return compact, nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, compact); err != nil {
		return nil, err
	}
	return bytes.Clone(out.Bytes()), nil // without the buffer's spare capacity
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

// Packed returns the snapshot in a third of the memory, for long-term storage. Reading it
// takes some microseconds longer. The text of a handled object is repetitive, because the
// annotation with the last handled state repeats its spec. A better compression would
// take ten times as long.
func (s *Snapshot) Packed() *Snapshot {
	if s.size > 0 {
		return s
	}
	var room [4 << 10]byte // on the stack: the result is a copy of the exact size
	text := s2.Encode(room[:], s.kept)
	if len(text) >= len(s.kept) {
		return s
	}
	packed := *s
	packed.size = len(s.kept)
	packed.kept = bytes.Clone(text)
	return &packed
}

// json returns the text of the object, which is read-only.
func (s *Snapshot) json() []byte {
	if s.size == 0 {
		return s.kept
	}
	text, _ := s2.Decode(make([]byte, s.size), s.kept) // cannot fail: Packed has written it
	return text
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
