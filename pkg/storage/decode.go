package storage

import (
	"errors"
	"fmt"
	"maps"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/wire"
)

// DecodeBase decodes the text that EncodeBase or an operator of Kopf has stored for
// the object. It returns nil for null, and fails if the text is not a JSON object. The essence is
// read-only, and may share its parts with the body.
func DecodeBase(body *object.Body, text string) (object.Essence, error) {
	decoded, err := wire.ParseMapping(text, body.Raw())
	if err != nil {
		return nil, err
	}
	return decodeMapping(body, decoded)
}

// decodeMapping restores the hashes in a decoded essence. It validates everything, because others
// can write the annotation.
func decodeMapping(body *object.Body, decoded map[string]any) (object.Essence, error) {
	if !isEnvelope(decoded) {
		return decoded, nil
	}
	if decoded[envelopeKey] != any(int64(envelopeVersion)) {
		return nil, fmt.Errorf("the hash format is unknown: this operator supports version %d", envelopeVersion)
	}
	known, knownErr := optionalMapping(decoded, "known")
	hashed, hashedErr := optionalMapping(decoded, "hashed")
	if err := errors.Join(knownErr, hashedErr); err != nil {
		return nil, err
	}
	return mergeHashes(newHasher(body.UID()), nil, known, hashed)
}

// envelope holds a base that is partly stored as hashes. Both mappings have the shape
// of the essence: Known has the stored values, Hashed has the hashes of the others.
type envelope struct {
	Version int            `json:"kopf-hashed"`
	Known   map[string]any `json:"known,omitempty"`
	Hashed  map[string]any `json:"hashed,omitempty"`
}

const (
	envelopeKey     = "kopf-hashed"
	envelopeVersion = 1
)

func isEnvelope(decoded map[string]any) bool { _, ok := decoded[envelopeKey]; return ok }

func optionalMapping(decoded map[string]any, key string) (map[string]any, error) {
	value, ok := decoded[key]
	mapping, isMapping := value.(map[string]any)
	if ok && !isMapping {
		return nil, fmt.Errorf("%s is not a JSON object", key)
	}
	return mapping, nil
}

// mergeHashes merges the hashes into the known values.
func mergeHashes(hasher hasher, path object.Path, known, hashed map[string]any) (map[string]any, error) {
	merged := make(map[string]any, len(known)+len(hashed))
	maps.Copy(merged, known)
	for key, value := range hashed {
		var err error
		switch value := value.(type) {
		case string:
			if len(value) != digestLength {
				err = fmt.Errorf("the hash of %s must have %d characters", child(path, key), digestLength)
			}
			merged[key] = &Hashed{hasher: hasher, path: child(path, key), digest: value}
		case map[string]any:
			inner, _ := known[key].(map[string]any)
			merged[key], err = mergeHashes(hasher, child(path, key), inner, value)
		default:
			err = fmt.Errorf("the hash of %s is not a string", child(path, key))
		}
		if err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// BrokenError reports a stored value that cannot be read, because it was edited or
// something else uses the same place. The message never quotes the value, which may be
// as long and as secret as the object itself.
type BrokenError struct {
	What  string // the expected content: `progress of handler "create_fn"`
	Where string // its location: `annotation "kopf.zalando.org/create_fn"`
	Err   error  // the reason
}

// Error describes the value, its location, the reason, and the remedy.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("the %s in the %s cannot be read; repair or remove it: %v", e.What, e.Where, e.Err)
}

// Unwrap returns the reason.
func (e *BrokenError) Unwrap() error { return e.Err }

// IsBroken reports whether the error is about an unreadable stored value.
func IsBroken(err error) bool {
	var broken *BrokenError
	return errors.As(err, &broken)
}
