package storage

import (
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/wire"
)

// HashReason tells why a base is kept as hashes: an object whose changes are seen
// as always, but whose old values are unknown, and which an operator of Kopf
// cannot take over without handling it once more.
type HashReason string

const (
	// NotHashed is a base that is kept as it is.
	NotHashed HashReason = ""
	// HashedSecret is a base without the data of a Secret: an annotation is shown
	// by many tools that would not show the data.
	HashedSecret HashReason = "Secret"
	// HashedSize is a base that would be larger than its storage allows.
	HashedSize HashReason = "size"
)

// hashedLimit is how many bytes a base takes at most if it does not fit as it is.
const hashedLimit = 16 << 10

// EncodeBase is the text in which an essence is stored as the base of the body's
// object: JSON on one line. With a limit above zero the text has at most as many
// bytes. What the reason says applies, also if the essence came with hashes from
// DecodeBase. It fails only if the limit leaves no room even for hashes.
//
// The same arguments give the same text. See formats.md.
func EncodeBase(body *object.Body, essence object.Essence, limit int) (string, HashReason, error) {
	if text, fits, err := encodeWhole(body, essence, limit); fits || err != nil {
		return text, NotHashed, err
	}
	hides := policy{secret: isSecret(body)}
	tree := newTree(newHasher(body.UID()), hides, essence)
	text, reason, err := hides.seal(tree)
	if err != nil || limit <= 0 || len(text) <= limit {
		return text, reason, err
	}
	hides.large = true
	tree = newTree(newHasher(body.UID()), hides, essence)
	limit = min(limit, hashedLimit)
	tree.fit(limit)
	text, reason, err = hides.seal(tree)
	if err == nil && len(text) > limit {
		err = fmt.Errorf("the last handled state takes %d bytes even as hashes, and there is room for %d: shorten or remove other annotations of the object", len(text), limit)
	}
	return text, reason, err
}

// encodeWhole is the short way for what nearly every base is: one that is kept as
// it is. It reports whether this is one.
func encodeWhole(body *object.Body, essence object.Essence, limit int) (text string, fits bool, err error) {
	if isSecret(body) || isEnvelope(essence) || hasHashes(essence) {
		return "", false, nil
	}
	text, err = wire.Compact(essence)
	return text, limit <= 0 || len(text) <= limit, err
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

// policy tells which values are not to be stored.
type policy struct{ secret, large bool }

// shortLeaf is how long a value may be, as JSON, to be kept beside hashes: a hash
// would not be much shorter, and a known old value is worth more to a handler.
const shortLeaf = 32

func (p policy) hides(leaf *node) bool {
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

// seal is the text of the tree: the essence itself if nothing of it is hidden.
func (p policy) seal(tree *tree) (string, HashReason, error) {
	known, hashed := tree.split()
	if len(hashed) == 0 && !isEnvelope(known) {
		text, err := wire.Compact(known)
		return text, NotHashed, err
	}
	text, err := wire.Compact(envelope{Version: envelopeVersion, Known: known, Hashed: hashed})
	return text, p.reason(hashed), err
}

func (p policy) reason(hashed map[string]any) HashReason {
	switch {
	case len(hashed) == 0:
		return NotHashed
	case p.secret:
		return HashedSecret
	default:
		return HashedSize
	}
}
