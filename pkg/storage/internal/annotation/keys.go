// Package annotation names the annotations that store an operator's state, recognizes
// those of other operators, and measures the room that is left.
package annotation

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/blake2b"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// MaxName is the maximum number of characters that Kubernetes allows in the name of
// an annotation, the part after the slash.
const MaxName = 63

// Keys returns the annotations that store one value: the current key, followed by the
// key of version 1 if it differs and is wanted.
func Keys(prefix, name string, body *object.Body, withoutV1 bool) []string {
	keys := []string{Key(prefix, name, body)}
	name = ownName(name, body)
	if v1 := keyV1(prefix, name); !withoutV1 && v1 != keys[0] {
		keys = append(keys, v1)
	}
	return keys
}

// Key returns the current key of the annotation.
func Key(prefix, name string, body *object.Body) string { return keyV2(prefix, ownName(name, body)) }

// ownName returns a separate name for a ReplicaSet of a Deployment, because Kubernetes
// copies the Deployment's annotations to the ReplicaSet.
func ownName(name string, body *object.Body) string {
	if kind, _ := body.Raw()["kind"].(string); kind == "ReplicaSet" && ownedByDeployment(body) {
		return name + "-ofDRS"
	}
	return name
}

func ownedByDeployment(body *object.Body) bool {
	found, _ := body.Lookup(object.Path{"metadata", "ownerReferences"})
	owners, _ := found.([]any)
	return slices.ContainsFunc(owners, func(owner any) bool {
		kind, _ := object.Lookup(owner, object.Path{"kind"})
		return kind == "Deployment"
	})
}

// keyV2 truncates the name to the limit of Kubernetes, and appends a hash if it is
// too long.
func keyV2(prefix, id string) string {
	name := safeName(id)
	if utf8.RuneCountInString(name) <= MaxName {
		return prefix + "/" + name
	}
	suffix := hashSuffix(id)
	return prefix + "/" + string([]rune(name)[:MaxName-len(suffix)]) + suffix
}

// keyV1 returns the key as older operators named it: they applied the limit to the
// entire key. With a very long prefix, the remainder is negative, and counts from the
// end of the name.
func keyV1(prefix, name string) string {
	name = safeName(name)
	left := MaxName - len(prefix) - len("/")
	if utf8.RuneCountInString(name) <= left {
		return prefix + "/" + name
	}
	safe := []rune(name)
	suffix := hashSuffix(name)
	end := left - len(suffix)
	if end < 0 {
		end += len(safe)
	}
	return prefix + "/" + string(safe[:max(0, end)]) + suffix
}

// safeName replaces the characters of handler ids that annotations cannot contain.
func safeName(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '/':
			return '.'
		case '<', '>':
			return '_'
		}
		return r
	}, name)
}

// hashSuffix returns a short hash of the name in characters that annotations allow.
func hashSuffix(name string) string {
	hash, err := blake2b.New(4, nil)
	if err != nil {
		return "" // unreachable: the size is valid, and there is no key
	}
	hash.Write([]byte(name))
	encoded := base64.RawStdEncoding.EncodeToString(hash.Sum(nil))
	return "-" + strings.NewReplacer("+", "-", "/", ".").Replace(encoded)
}
