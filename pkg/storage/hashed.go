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

// Hashed replaces a value in an essence if only its hash was stored. The value is a
// leaf or an entire mapping. Hashed is an object.Opaque.
type Hashed struct {
	hasher hasher
	path   object.Path
	digest string
}

var _ object.Opaque = (*Hashed)(nil)

// EqualTo reports whether the value equals the hashed one by the rules of JSON:
// numbers are compared by value, and a null inside a mapping counts as absent.
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

// String returns a placeholder for the value.
func (h *Hashed) String() string { return "(unknown)" }

// MarshalJSON returns null, so that a typed object made from the essence has the
// field's zero value. To store an essence, use EncodeBase.
func (h *Hashed) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// hasher hashes the values of one object. The key depends on the object and the hash
// on the path, so equal values have different hashes. This does not protect guessable
// values from people who can read the object.
type hasher struct{ key string }

// digestSize is in bytes; digestLength is the length of the encoded digest.
const (
	digestSize   = 16
	digestLength = 22
)

func newHasher(uid types.UID) hasher {
	// BLAKE2b limits the length of keys; the uids of Kubernetes have 36 characters.
	return hasher{string(uid[:min(len(uid), blake2b.Size)])}
}

// digest returns the hash of a value. It hashes a mapping by the digests of its values,
// so that it also works for mappings that contain a Hashed. It returns an empty text for
// values that are not JSON.
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
		return "" // unreachable: the sizes are valid
	}
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// normal converts a value so that equal values have equal texts.
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
