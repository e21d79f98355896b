package annotation

import (
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// DefaultPrefix is the prefix of the annotations in which Kopf's operators,
	// and those of this project, keep what they know about an object.
	DefaultPrefix = "kopf.zalando.org"

	// Marker is the annotation by which an operator with another prefix tells the
	// other operators that the prefix is its own.
	Marker = "kopf-managed"

	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

// WithoutOperators leaves out the annotations that kubectl and operators like
// this one keep for themselves. Were they a change, two operators would wake
// each other for ever, and each would store the other's storage.
func WithoutOperators(annotations map[string]any) map[string]any {
	prefixes := markedPrefixes(annotations)
	return WithoutKeys(annotations, func(key string) bool {
		prefix, _, ok := strings.Cut(key, "/")
		return key == lastApplied || ok && (IsKnownPrefix(prefix) || slices.Contains(prefixes, prefix))
	})
}

// markedPrefixes finds the operators' prefixes. Any value of the marker counts.
func markedPrefixes(annotations map[string]any) []string {
	var prefixes []string
	for key := range annotations {
		if prefix, name, ok := strings.Cut(key, "/"); ok && name == Marker {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

// IsKnownPrefix reports whether the prefix is Kopf's own, or a subdomain of it.
func IsKnownPrefix(prefix string) bool {
	domain, ok := strings.CutSuffix(prefix, DefaultPrefix)
	return ok && (domain == "" || strings.HasSuffix(domain, "."))
}

// WithoutKeys returns the mapping itself if there is nothing to leave out.
func WithoutKeys(mapping map[string]any, unwanted func(key string) bool) map[string]any {
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

// NeedsMarker reports whether the prefix must be marked. Kopf does not mark those
// that begin like its own, which it does not ignore all the same.
func NeedsMarker(prefix string) bool { return !strings.HasPrefix(prefix, "kopf.") }

// Path is where the annotation is in an object.
func Path(key string) object.Path { return object.Path{"metadata", "annotations", key} }
