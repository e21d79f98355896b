package storage

import (
	"encoding/base64"
	"maps"
	"math"
	"slices"

	"golang.org/x/crypto/blake2b"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/wire"
)

// Hashed stands in an essence for a value of which only a hash was kept: a leaf,
// or a mapping as a whole. It is an object.Opaque.
type Hashed struct {
	hasher hasher
	path   object.Path
	digest string
}

var _ object.Opaque = (*Hashed)(nil)

// EqualTo reports whether the value is the one that was hashed, as JSON compares:
// numbers by value, a null inside a mapping as its absence.
func (h *Hashed) EqualTo(value any) bool {
	switch value.(type) {
	case nil:
		return false
	case *Hashed, string, bool, int64, float64, map[string]any, []any:
	default:
		normalized, err := object.Normalize(value)
		if err != nil {
			return false
		}
		value = normalized
	}
	return h.digest == h.hasher.digest(h.path, value)
}

// String is what people see in place of the value.
func (h *Hashed) String() string { return "(unknown)" }

// MarshalJSON writes a null, so that a typed object that is made of the essence
// has the field's zero value. EncodeBase is the way to store an essence.
func (h *Hashed) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// hasher makes the hashes of one object. The key ties them to the object, the
// path to the place: equal values cannot be told by equal hashes. It does not
// hide a value that can be guessed from somebody who may read the object.
type hasher struct{ key string }

// digestSize is in bytes; digestLength is that of its text.
const (
	digestSize   = 16
	digestLength = 22
)

func newHasher(uid types.UID) hasher {
	// The longest key of BLAKE2b. The uids of Kubernetes have 36 characters.
	return hasher{string(uid[:min(len(uid), blake2b.Size)])}
}

// digest hashes a mapping by the digests of its values, so that a mapping of
// values that are known only by their digests has a digest too. It is empty for
// what is not JSON.
func (h hasher) digest(path object.Path, value any) string {
	switch value := value.(type) {
	case *Hashed:
		return value.digest
	case map[string]any:
		digests := make(map[string]any, len(value))
		for key, inner := range value {
			if inner != nil {
				digests[key] = h.digest(child(path, key), inner)
			}
		}
		return h.sum(path, "mapping", digests)
	default:
		return h.sum(path, "value", normal(value))
	}
}

func (h hasher) sum(path object.Path, kind string, payload any) string {
	text, err := wire.Compact([]any{path, kind, payload})
	if err != nil {
		return ""
	}
	mac, err := blake2b.New(digestSize, []byte(h.key))
	if err != nil {
		return "" // cannot be: the sizes are right
	}
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// normal brings a value to the form in which equal values have equal texts.
func normal(value any) any {
	switch value := value.(type) {
	case nil, bool, string, int64:
		return value
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<63 {
			return int64(value)
		}
		return value
	case []any:
		items := make([]any, len(value))
		for i := range value {
			items[i] = normal(value[i])
		}
		return items
	case map[string]any:
		fields := maps.Clone(value)
		maps.DeleteFunc(fields, func(_ string, inner any) bool { return inner == nil })
		for key, inner := range fields {
			fields[key] = normal(inner)
		}
		return fields
	default:
		return value
	}
}

func child(path object.Path, key string) object.Path { return append(slices.Clip(path), key) }
