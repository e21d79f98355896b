package storage

import (
	"errors"
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/wire"
)

// HashReason is the reason why a base is stored as hashes. Changes of such an object
// are detected as usual, but the old values are unknown, and an operator of Kopf
// handles the object once more when it takes over.
type HashReason string

const (
	// NotHashed means that the base is stored as it is.
	NotHashed HashReason = ""
	// HashedSecret means that the data of a Secret is hashed, because many tools show
	// annotations that would not show the data.
	HashedSecret HashReason = "Secret"
	// HashedSize means that the base is larger than its storage allows.
	HashedSize HashReason = "size"
)

// hashedLimit is the maximum size in bytes of a base that does not fit unhashed.
const hashedLimit = 16 << 10

// tooLargeError is the error about a text that does not fit, even with hashes.
type tooLargeError struct {
	what string
	size int
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("%s takes %d bytes even as hashes, and there is not enough room for it", e.what, e.size)
}

func isTooLarge(err error) bool {
	var tooLarge *tooLargeError
	return errors.As(err, &tooLarge)
}

// EncodeBase returns the text that stores an essence as the base of the body's object:
// JSON on one line. If the limit is above zero, it is the maximum size in bytes. The
// HashReason is also returned for hashes that came with the essence from DecodeBase.
// It fails only if the limit leaves no room even for hashes.
//
// The same arguments give the same text. See formats.md.
func EncodeBase(body *object.Body, essence object.Essence, limit int) (string, HashReason, error) {
	// Nearly every base is stored as it is.
	if !isSecret(body) && !isEnvelope(essence) && !hasHashes(essence) {
		text, err := wire.Compact(essence)
		if err != nil || limit <= 0 || len(text) <= limit {
			return text, NotHashed, err
		}
	}
	policy := policy{secret: isSecret(body)}
	tree := newTree(newHasher(body.UID()), policy, essence)
	text, reason, err := policy.encode(tree)
	if err != nil || limit <= 0 || len(text) <= limit {
		return text, reason, err
	}
	policy.large = true
	tree = newTree(newHasher(body.UID()), policy, essence)
	limit = min(limit, hashedLimit)
	tree.fit(limit)
	text, reason, err = policy.encode(tree)
	if err == nil && len(text) > limit {
		err = &tooLargeError{"the last handled state", len(text)}
	}
	return text, reason, err
}

func hasHashes(mapping map[string]any) bool {
	for _, value := range mapping {
		switch value := value.(type) {
		case *Hashed:
			return true
		case map[string]any:
			if hasHashes(value) {
				return true
			}
		}
	}
	return false
}

func isSecret(body *object.Body) bool {
	raw := body.Raw()
	return raw["kind"] == "Secret" && raw["apiVersion"] == "v1"
}

// policy decides which values are hashed.
type policy struct{ secret, large bool }

// shortLeaf is the maximum length, as JSON, of a value that is never hashed for size: a
// hash would not be much shorter, and a known old value is more useful to handlers.
const shortLeaf = 32

func (p policy) mustHash(leaf *node) bool {
	if _, isHashed := leaf.value.(*Hashed); isHashed {
		return true
	}
	if isEmpty(leaf.value) {
		return false
	}
	if p.secret && (leaf.path[0] == "data" || leaf.path[0] == "stringData") {
		return true
	}
	return p.large && leaf.size > shortLeaf
}

// encode encodes the tree: as the essence itself if nothing is hidden.
func (p policy) encode(tree *tree) (string, HashReason, error) {
	known, hashed := tree.split(tree.root)
	if len(hashed) == 0 && !isEnvelope(known) {
		text, err := wire.Compact(known)
		return text, NotHashed, err
	}
	text, err := wire.Compact(envelope{Version: envelopeVersion, Known: known, Hashed: hashed})
	switch {
	case len(hashed) == 0:
		return text, NotHashed, err
	case p.secret:
		return text, HashedSecret, err
	default:
		return text, HashedSize, err
	}
}
