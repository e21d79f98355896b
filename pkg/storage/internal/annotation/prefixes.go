package annotation

import (
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// DefaultPrefix is the prefix of the annotations in which operators of Kopf and
	// of this project store their state.
	DefaultPrefix = "kopf.zalando.org"

	// Marker is the name of the annotation that marks a prefix as an operator's, so
	// that other operators ignore its annotations.
	Marker = "kopf-managed"

	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

// WithoutOperators leaves out the annotations of kubectl and of operators. If they
// counted as changes, two operators would trigger each other endlessly, and each would
// store the other's data.
func WithoutOperators(annotations map[string]any) map[string]any {
	var marked []string // whatever the value of the marker
	for key := range annotations {
		if prefix, name, ok := strings.Cut(key, "/"); ok && name == Marker {
			marked = append(marked, prefix)
		}
	}
	return WithoutKeys(annotations, func(key string) bool {
		prefix, _, ok := strings.Cut(key, "/")
		return key == lastApplied || ok && (IsKnownPrefix(prefix) || slices.Contains(marked, prefix))
	})
}

// IsKnownPrefix reports whether the prefix is Kopf's own or a subdomain of it.
func IsKnownPrefix(prefix string) bool {
	domain, ok := strings.CutSuffix(prefix, DefaultPrefix)
	return ok && (domain == "" || strings.HasSuffix(domain, "."))
}

// WithoutKeys returns the mapping without the unwanted keys. It returns the same
// mapping if there are none.
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

// NeedsMarker reports whether the prefix must be marked. Kopf does not mark prefixes
// that begin with "kopf.", although it does not ignore them either.
func NeedsMarker(prefix string) bool { return !strings.HasPrefix(prefix, "kopf.") }

// Path returns the path of the annotation in an object.
func Path(key string) object.Path { return object.Path{"metadata", "annotations", key} }
