package recording

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Hasher replaces values by hashes.
type Hasher struct {
	key       []byte
	constants map[any]bool
	fields    []object.Path
}

// NewHasher returns a hasher with a new key.
func NewHasher(constants []any, fields []object.Path) *Hasher {
	h := &Hasher{key: make([]byte, sha256.Size), constants: map[any]bool{}, fields: fields}
	_, _ = rand.Read(h.key) // never fails
	for _, one := range constants {
		h.constants[one] = true
	}
	return h
}

// Object returns a copy of an object or an essence with hashes.
func (h *Hasher) Object(raw map[string]any) map[string]any {
	if raw == nil {
		return nil
	}
	hashed, _ := h.in(nil, raw).(map[string]any) // a map remains a map
	return hashed
}

// in returns a value at a path with hashes.
func (h *Hasher) in(path object.Path, value any) any {
	switch value := value.(type) {
	case map[string]any:
		made := make(map[string]any, len(value))
		for key, one := range value {
			made[key] = h.in(append(slices.Clip(path), key), one)
		}
		return made
	case []any:
		made := make([]any, len(value))
		for i, one := range value {
			made[i] = h.in(path, one)
		}
		return made
	}
	if h.isReadable(path, value) {
		return value
	}
	return h.leaf(value)
}

func (h *Hasher) isReadable(path object.Path, value any) bool {
	isConstant := false
	switch value.(type) {
	case string, int64, float64:
		isConstant = h.constants[value]
	}
	isKind := len(path) == 1 && (path[0] == "kind" || path[0] == "apiVersion")
	return value == nil || value == "" || isConstant || isKind ||
		slices.ContainsFunc(h.fields, func(field object.Path) bool { return path.HasPrefix(field) })
}

// leaf returns the hash of a text or a number, in the form of the value.
func (h *Hasher) leaf(value any) any {
	switch value := value.(type) {
	case string:
		return h.text(value)
	case int64:
		if value == 0 {
			return value
		}
		return int64(h.number(fmt.Sprint(value)) >> 32) //nolint:gosec // it fits
	case float64:
		if value == 0 {
			return value
		}
		return float64(h.number(fmt.Sprint(value))>>32) + 0.5
	default:
		return value // booleans
	}
}

// text returns the hash of a text. Texts that Go types decode keep their form.
func (h *Hasher) text(value string) string {
	sum := h.sum(value)
	if _, err := time.Parse(time.RFC3339, value); err == nil {
		return time.Unix(int64(binary.BigEndian.Uint32(sum)), 0).UTC().Format(time.RFC3339)
	}
	if _, err := resource.ParseQuantity(value); err == nil {
		return fmt.Sprint(binary.BigEndian.Uint32(sum))
	}
	return hex.EncodeToString(sum[:8])
}

func (h *Hasher) number(value string) uint64 { return binary.BigEndian.Uint64(h.sum(value)) }

func (h *Hasher) sum(value string) []byte {
	mac := hmac.New(sha256.New, h.key)
	_, _ = mac.Write([]byte(strings.ToValidUTF8(value, "?"))) // never fails
	return mac.Sum(nil)
}
