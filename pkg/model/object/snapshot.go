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

// Snapshot is one version of one object in its smallest form: compact JSON
// without managedFields. It is immutable, safe for concurrent use, and can be
// stored by client-go's informers.
type Snapshot struct {
	kept            []byte                // the JSON; packed if size is not 0
	size            int                   // of the JSON that is packed
	namespace       unique.Handle[string] // many objects share few namespaces
	name            string
	uid             types.UID
	resourceVersion string
}

var _ runtime.Object = (*Snapshot)(nil)

// ParseSnapshot makes a snapshot of an object's JSON. The bytes are copied; the
// caller keeps its slice. The text is checked to be a JSON mapping, nothing
// more: the API server is the judge of the rest.
func ParseSnapshot(data []byte) (*Snapshot, error) {
	data = bytes.TrimSpace(data)
	if !gjson.ValidBytes(data) || data[0] != '{' {
		return nil, fmt.Errorf("an object is expected as a JSON mapping, not %q", abbreviate(data))
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

// compactJSON is a copy of the text without the managed fields: nobody who
// handles an object looks at them, and they are often the largest part of it.
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
	return bytes.Clone(out.Bytes()), nil // without the buffer's spare room
}

func abbreviate(data []byte) []byte {
	const limit = 40
	if len(data) > limit {
		return append(bytes.Clone(data[:limit]), "..."...)
	}
	return data
}

// Body opens the snapshot for reading. Every call makes a new body, so that
// what was decoded goes away with its reader.
func (s *Snapshot) Body() *Body { return &Body{snapshot: s} }

// Packed is the same snapshot in a third of the memory, to be kept for long:
// reading it takes some microseconds more. The text of a handled object is full
// of repetitions, for its spec is there again in the annotation with the last
// handled state. A better compression is possible, and costs ten times as much.
func (s *Snapshot) Packed() *Snapshot {
	if s.size > 0 {
		return s
	}
	var room [4 << 10]byte // on the stack: what is kept is a copy of the right size
	text := s2.Encode(room[:], s.kept)
	if len(text) >= len(s.kept) {
		return s
	}
	packed := *s
	packed.size, packed.kept = len(s.kept), bytes.Clone(text)
	return &packed
}

// json is the text of the object; read only.
func (s *Snapshot) json() []byte {
	if s.size == 0 {
		return s.kept
	}
	text, _ := s2.Decode(make([]byte, s.size), s.kept) // nobody else has written it: it is no error
	return text
}

// Size is the number of bytes that the object's JSON has.
func (s *Snapshot) Size() int { return cmp.Or(s.size, len(s.kept)) }

// GetObjectKind returns a copy of apiVersion and kind, as runtime.Object requires.
func (s *Snapshot) GetObjectKind() schema.ObjectKind {
	return &metav1.TypeMeta{APIVersion: s.text("apiVersion"), Kind: s.text("kind")}
}

// DeepCopyObject returns the snapshot itself: it never changes.
func (s *Snapshot) DeepCopyObject() runtime.Object { return s }

func (s *Snapshot) text(path string) string { return gjson.GetBytes(s.json(), path).String() }
