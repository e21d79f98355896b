package storage

import (
	"encoding/base64"
	"slices"
	"strings"

	"golang.org/x/crypto/blake2b"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// maxName is how many characters Kubernetes allows in the name of an annotation,
// the part after the slash.
const maxName = 63

// annotationKeys are the annotations that hold one value: the current key first,
// then the one of version 1 where it differs, unless that one is not wanted.
func annotationKeys(prefix, name string, body *object.Body, current bool) []string {
	name = marked(name, body)
	keys := []string{keyV2(prefix, name)}
	if v1 := keyV1(prefix, name); !current && v1 != keys[0] {
		keys = append(keys, v1)
	}
	return keys
}

// marked tells a ReplicaSet's own values from those of its Deployment, whose
// annotations Kubernetes copies down to it.
func marked(name string, body *object.Body) string {
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
	if len(safe) <= maxName {
		return prefix + "/" + string(safe)
	}
	suffix := hashSuffix(name)
	return prefix + "/" + string(safe[:maxName-len(suffix)]) + suffix
}

// keyV1 is how older operators named the annotation: they took the limit for
// one of the whole key. With a very long prefix the remainder is negative, and
// counts from the end of the name.
func keyV1(prefix, name string) string {
	name = safeName(name)
	safe := []rune(name)
	left := maxName - len(prefix) - len("/")
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
