package conformance

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// This file has the rules by which Kopf decides about an object, written down once more without
// the code of this project. The vectors that were measured on a running Kopf show that they are
// those of Kopf; takeover_features_test.go looks with them at what this project leaves on objects.

const kopfPrefix = "kopf.zalando.org"

// kopfEssence returns what Kopf compares of an object.
func kopfEssence(raw map[string]any, extraFields, ignoredFields []string) map[string]any {
	raw = copied(raw)
	essence := map[string]any{}
	for key, value := range raw {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, key) {
			essence[key] = value
		}
	}
	fields := append([]string{"metadata.labels", "metadata.annotations"}, extraFields...)
	for _, field := range fields {
		if value, found := kopfField(raw, strings.Split(field, ".")); found {
			kopfSet(essence, strings.Split(field, "."), value)
		}
	}
	if annotations, ok := kopfField(essence, []string{"metadata", "annotations"}); ok {
		kopfClearAnnotations(annotations.(map[string]any))
	}
	for _, field := range ignoredFields {
		kopfRemove(essence, strings.Split(field, "."))
	}
	kopfRemove(essence, []string{"status", "kopf", "progress"})
	for _, field := range [][]string{{"metadata", "labels"}, {"metadata", "annotations"}, {"metadata"}, {"status"}} {
		if value, found := kopfField(essence, field); found && reflect.DeepEqual(value, map[string]any{}) {
			kopfRemove(essence, field)
		}
	}
	return essence
}

// kopfClearAnnotations removes the annotations of kubectl, and of all operators.
func kopfClearAnnotations(annotations map[string]any) {
	prefixes := []string{kopfPrefix}
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

// kopfReason returns the cause that Kopf detects.
func kopfReason(eventType string, deleting, ownFinalizer, initial bool, lastHandled string) string {
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

func copied(raw map[string]any) map[string]any {
	text, _ := json.Marshal(raw)
	again := map[string]any{}
	_ = decode(text, &again)
	return again
}

func kopfField(in map[string]any, path []string) (any, bool) {
	value, found := in[path[0]]
	if !found || len(path) == 1 {
		return value, found
	}
	below, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	return kopfField(below, path[1:])
}

func kopfSet(in map[string]any, path []string, value any) {
	if len(path) == 1 {
		in[path[0]] = value
		return
	}
	below, ok := in[path[0]].(map[string]any)
	if !ok {
		below = map[string]any{}
		in[path[0]] = below
	}
	kopfSet(below, path[1:], value)
}

// kopfRemove removes a field, and what contains nothing else.
func kopfRemove(in map[string]any, path []string) {
	below, isMapping := in[path[0]].(map[string]any)
	switch {
	case len(path) == 1:
		delete(in, path[0])
	case isMapping:
		if kopfRemove(below, path[1:]); len(below) == 0 {
			delete(in, path[0])
		}
	}
}

func TestRulesOfKopfAreThoseOfKopf(t *testing.T) {
	type input struct {
		Body          map[string]any `json:"body"`
		ExtraFields   []string       `json:"extraFields"`
		IgnoredFields []string       `json:"ignoredFields"`
	}
	type essence struct {
		Essence map[string]any `json:"essence"`
	}
	for _, v := range load[input, essence](t, "essence") {
		sameDocument(t, v.Name, kopfEssence(v.Input.Body, v.Input.ExtraFields, v.Input.IgnoredFields), v.Expect.Essence)
	}
	type observed struct {
		EventType         string `json:"eventType"`
		LastHandled       string `json:"lastHandled"`
		DeletionTimestamp bool   `json:"deletionTimestamp"`
		OwnFinalizer      bool   `json:"ownFinalizer"`
		Initial           bool   `json:"initial"`
	}
	type detected struct {
		Reason string `json:"reason"`
	}
	for _, v := range load[observed, detected](t, "causes") {
		i := v.Input
		if got := kopfReason(i.EventType, i.DeletionTimestamp, i.OwnFinalizer, i.Initial, i.LastHandled); got != v.Expect.Reason {
			t.Errorf("%s: got %s, want %s", v.Name, got, v.Expect.Reason)
		}
	}
}
