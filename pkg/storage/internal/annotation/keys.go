// Package annotation names the annotations in which operators keep their state,
// recognizes those of other operators, and measures the room that is left for them.
package annotation

import (
	"encoding/base64"
	"slices"
	"strings"

	"golang.org/x/crypto/blake2b"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// MaxName is how many characters Kubernetes allows in the name of an annotation,
// the part after the slash.
const MaxName = 63

// Keys are the annotations that hold one value: the current key first,
// then the one of version 1 where it differs, unless that one is not wanted.
func Keys(prefix, name string, body *object.Body, withoutV1 bool) []string {
	keys := []string{Key(prefix, name, body)}
	name = ownName(name, body)
	if v1 := keyV1(prefix, name); !withoutV1 && v1 != keys[0] {
		keys = append(keys, v1)
	}
	return keys
}

// Key is the current key of the annotation.
func Key(prefix, name string, body *object.Body) string { return keyV2(prefix, ownName(name, body)) }

// ownName tells a ReplicaSet's own values from those of its Deployment, whose
// annotations Kubernetes copies down to it.
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

// keyV2 cuts the name to the limit of Kubernetes, and puts a hash in place of
// what was cut.
func keyV2(prefix, name string) string {
	safe := []rune(safeName(name))
	if len(safe) <= MaxName {
		return prefix + "/" + string(safe)
	}
	suffix := hashSuffix(name)
	return prefix + "/" + string(safe[:MaxName-len(suffix)]) + suffix
}

// keyV1 is how older operators named the annotation: they took the limit for
// one of the whole key. With a very long prefix the remainder is negative, and
// counts from the end of the name.
func keyV1(prefix, name string) string {
	name = safeName(name)
	safe := []rune(name)
	left := MaxName - len(prefix) - len("/")
	if len(safe) <= left {
		return prefix + "/" + name
	}
	suffix := hashSuffix(name)
	end := left - len(suffix)
	if end < 0 {
		end += len(safe)
	}
	return prefix + "/" + string(safe[:max(0, end)]) + suffix
}

// safeName replaces those characters of handler ids that annotations cannot have.
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

// hashSuffix is a short hash of the name, in letters that an annotation can have.
func hashSuffix(name string) string {
	hash, err := blake2b.New(4, nil)
	if err != nil {
		return "" // cannot be: the size is right and there is no key
	}
	hash.Write([]byte(name))
	encoded := base64.RawStdEncoding.EncodeToString(hash.Sum(nil))
	return "-" + strings.NewReplacer("+", "-", "/", ".").Replace(encoded)
}
