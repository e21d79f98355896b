// Package kopfrules has the rules by which Kopf decides about an object, written down once more
// without the code of this project, so that tests can look with them at what this project leaves on
// objects. test/conformance shows with measurements of a running Kopf that they are those of Kopf.
package kopfrules

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/json"
)

// Prefix is that of the annotations of Kopf.
const Prefix = "kopf.zalando.org"

// Essence returns what Kopf compares of an object.
func Essence(raw map[string]any, extraFields, ignoredFields []string) map[string]any {
	raw = runtime.DeepCopyJSON(raw)
	essence := map[string]any{}
	for key, value := range raw {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, key) {
			essence[key] = value
		}
	}
	fields := append([]string{"metadata.labels", "metadata.annotations"}, extraFields...)
	for _, field := range fields {
		if value, found := fieldOf(raw, strings.Split(field, ".")); found {
			set(essence, strings.Split(field, "."), value)
		}
	}
	if value, found := fieldOf(essence, []string{"metadata", "annotations"}); found {
		annotations, _ := value.(map[string]any)
		clearAnnotations(annotations)
	}
	for _, field := range ignoredFields {
		remove(essence, strings.Split(field, "."))
	}
	remove(essence, []string{"status", "kopf", "progress"})
	for _, field := range [][]string{{"metadata", "labels"}, {"metadata", "annotations"}, {"metadata"}, {"status"}} {
		if value, found := fieldOf(essence, field); found && reflect.DeepEqual(value, map[string]any{}) {
			remove(essence, field)
		}
	}
	return essence
}

// clearAnnotations removes the annotations of kubectl, and of all operators.
func clearAnnotations(annotations map[string]any) {
	prefixes := []string{Prefix}
	for key := range annotations {
		if prefix, isMarker := strings.CutSuffix(key, "/kopf-managed"); isMarker {
			prefixes = append(prefixes, prefix)
		}
	}
	maps.DeleteFunc(annotations, func(key string, _ any) bool {
		prefix, _, _ := strings.Cut(key, "/")
		return key == "kubectl.kubernetes.io/last-applied-configuration" ||
			slices.ContainsFunc(prefixes, func(known string) bool { return prefix == known || strings.HasSuffix(prefix, "."+known) })
	})
}

// Reason returns the cause that Kopf detects.
func Reason(eventType string, deleting, ownFinalizer, initial bool, lastHandled string) string {
	switch {
	case eventType == "DELETED":
		return "gone"
	case deleting && !ownFinalizer:
		return "free"
	case deleting:
		return "delete"
	case lastHandled == "none":
		return "create"
	case lastHandled == "changed":
		return "update"
	case initial:
		return "resume"
	default:
		return "noop"
	}
}

func fieldOf(in map[string]any, path []string) (any, bool) {
	value, found := in[path[0]]
	if !found || len(path) == 1 {
		return value, found
	}
	below, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	return fieldOf(below, path[1:])
}

func set(in map[string]any, path []string, value any) {
	if len(path) == 1 {
		in[path[0]] = value
		return
	}
	below, ok := in[path[0]].(map[string]any)
	if !ok {
		below = map[string]any{}
		in[path[0]] = below
	}
	set(below, path[1:], value)
}

// remove removes a field, and what contains nothing else.
func remove(in map[string]any, path []string) {
	below, isMapping := in[path[0]].(map[string]any)
	switch {
	case len(path) == 1:
		delete(in, path[0])
	case isMapping:
		if remove(below, path[1:]); len(below) == 0 {
			delete(in, path[0])
		}
	}
}

// Cause returns the cause that a Kopf detects that takes over the object, with handlers of the
// fields: "resume" or "noop" if it has nothing to do, after a start or later.
func Cause(obj *unstructured.Unstructured, initial bool, fields ...string) (string, error) {
	stored, isHandled := obj.GetAnnotations()[Prefix+"/last-handled-configuration"]
	lastHandled := "none"
	if isHandled {
		base := map[string]any{}
		if err := decode([]byte(stored), &base); err != nil {
			return "", err
		}
		lastHandled = "changed"
		if reflect.DeepEqual(Essence(obj.Object, fields, nil), base) {
			lastHandled = "same"
		}
	}
	return Reason("MODIFIED", obj.GetDeletionTimestamp() != nil, len(obj.GetFinalizers()) > 0, initial, lastHandled), nil
}

// Records returns the annotations that Kopf would read as the progress of a handler.
func Records(annotations map[string]string) []string {
	var found []string
	for key, text := range annotations {
		record := map[string]any{}
		if strings.HasPrefix(key, Prefix+"/") && decode([]byte(text), &record) == nil {
			if _, isRecord := record["purpose"]; isRecord || record["started"] != nil || record["retries"] != nil {
				found = append(found, key)
			}
		}
	}
	return slices.Sorted(slices.Values(found))
}

// decode decodes JSON as the API machinery does: whole numbers become int64.
func decode(data []byte, into any) error {
	return json.UnmarshalCaseSensitivePreserveInts(data, into)
}
