package storage

import (
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// DefaultPrefix is the prefix of the annotations in which Kopf's operators,
	// and those of this project, keep what they know about an object.
	DefaultPrefix = "kopf.zalando.org"

	// marker is the annotation by which an operator with another prefix tells the
	// other operators that the prefix is its own.
	marker = "kopf-managed"

	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

// withoutOperators leaves out the annotations that kubectl and operators like
// this one keep for themselves. Were they a change, two operators would wake
// each other for ever, and each would store the other's storage.
func withoutOperators(annotations map[string]any) map[string]any {
	prefixes := markedPrefixes(annotations)
	return withoutKeys(annotations, func(key string) bool {
		prefix, _, ok := strings.Cut(key, "/")
		return key == lastApplied || ok && (isKnownPrefix(prefix) || slices.Contains(prefixes, prefix))
	})
}

// markedPrefixes finds the operators' prefixes. Any value of the marker counts.
func markedPrefixes(annotations map[string]any) []string {
	var prefixes []string
	for key := range annotations {
		if prefix, name, ok := strings.Cut(key, "/"); ok && name == marker {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

func isKnownPrefix(prefix string) bool {
	domain, ok := strings.CutSuffix(prefix, DefaultPrefix)
	return ok && (domain == "" || strings.HasSuffix(domain, "."))
}

// withoutKeys returns the mapping itself if there is nothing to leave out.
func withoutKeys(mapping map[string]any, unwanted func(key string) bool) map[string]any {
	count := 0
	for key := range mapping {
		if unwanted(key) {
			count++
		}
	}
	if count == 0 {
		return mapping
	}
	left := make(map[string]any, len(mapping)-count)
	for key, value := range mapping {
		if !unwanted(key) {
			left[key] = value
		}
	}
	return left
}

// needsMarker tells whether the prefix must be marked. Kopf does not mark those
// that begin like its own, which it does not ignore all the same.
func needsMarker(prefix string) bool { return !strings.HasPrefix(prefix, "kopf.") }

// mark tells the other operators that the prefix is one of an operator. Once is
// enough: the marker stays when the operator's other annotations go.
func mark(prefix string, body *object.Body, into Patch) {
	path := annotation(prefix + "/" + marker)
	if _, present := body.Lookup(path); !present && needsMarker(prefix) {
		into.Set(path, "yes")
	}
}

func annotation(key string) object.Path { return object.Path{"metadata", "annotations", key} }
