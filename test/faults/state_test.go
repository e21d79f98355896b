package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

const (
	ourFinalizer = settings.DefaultFinalizer
	ourPrefix    = storage.DefaultPrefix + "/"
	baseKey      = ourPrefix + storage.DefaultKey
	startedKey   = baseKey + "-started"
)

// state is one version of the object with the operator's records.
type state struct {
	body *object.Body // nil if nothing is known yet
}

func newState(content []byte) (state, error) {
	snapshot, err := object.ParseSnapshot(content)
	if err != nil {
		return state{}, err
	}
	return state{snapshot.Body()}, nil
}

// Body returns the object.
func (s state) Body() *object.Body { return s.body }

// base returns the essence that was last handled.
func (s state) base() object.Essence {
	if s.body == nil {
		return nil
	}
	base, _ := storage.AnnotationsDiffBase{}.Fetch(context.Background(), s.body)
	return base
}

// isBefore reports whether another version of the same object is later. Two operators can get
// their answers in the other order than the API server has written the versions.
func (s state) isBefore(other state) bool {
	return other.body != nil && other.body.UID() == s.body.UID() &&
		number(s.body.ResourceVersion()) < number(other.body.ResourceVersion())
}

// record returns the progress of a handler, or nil if there is none.
func (s state) record(id string) *storage.Record {
	if s.body == nil {
		return nil
	}
	record, _ := storage.SmartProgress{}.Fetch(context.Background(), s.body, id)
	return record
}

// openCycle is what the annotation of an open cycle says.
type openCycle struct {
	Cycle string         `json:"cycle"`
	At    map[string]int `json:"at"`
}

func (s state) open() (c openCycle) {
	if s.body != nil {
		text, _ := s.body.Annotation(ourPrefix + "last-handled-configuration-started")
		_ = json.Unmarshal([]byte(text), &c) // it may be damaged
	}
	return c
}

// hasPosition reports whether the annotation of an open cycle says where a handler has ended.
func (s state) hasPosition(id string) bool {
	_, has := s.open().At[id]
	return has
}

// isLeftOver reports whether a record in the status belongs to an earlier cycle than the open one. A record without a
// cycle belongs to that of the others.
func (s state) isLeftOver(r *storage.Record) bool {
	open := s.open().Cycle
	if r.Cycle != "" {
		return r.Cycle != open
	}
	records, _, _ := unstructured.NestedMap(s.body.Raw(), "status", "kopf", "progress")
	for _, other := range records {
		if cycle, _, _ := unstructured.NestedString(map[string]any{"other": other}, "other", "cycle"); cycle != "" && cycle != open {
			return true
		}
	}
	return false
}

// isHeld reports whether the object has the finalizer.
func (s state) isHeld() bool { return s.body != nil && contains(s.body.Finalizers(), ourFinalizer) }

// released reports whether the operator no longer holds the deletion.
func (s state) released() bool {
	return s.body != nil && s.body.Deleting() && !s.isHeld()
}

// handled reports whether the object needs no more work.
func (s state) handled() bool {
	return equal(s.base(), storage.AnnotationsDiffBase{}.Build(s.body, nil)) && len(s.leftovers()) == 0
}

// leftovers returns our annotations, except for the base, requests, the places of children, and the last run.
func (s state) leftovers() []string {
	var keys []string
	for key := range s.body.Annotations() {
		if strings.HasPrefix(key, ourPrefix) && key != baseKey && !strings.HasPrefix(key, requestPrefix) && key != convergence.PlacesAnnotation && key != runKey {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// essential returns the state that must be the same with and without faults: the object without
// the parts that differ between runs, and without changes by others.
func (s state) essential() map[string]any {
	if s.body == nil {
		return nil
	}
	raw := object.Copy(s.body.Raw()).(map[string]any)
	metadata := raw["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if text, ok := annotations[baseKey].(string); ok {
		base := map[string]any{}
		_ = json.Unmarshal([]byte(text), &base)
		withoutOthers(base)
		annotations[baseKey] = base
	}
	maps.DeleteFunc(metadata, func(key string, _ any) bool {
		return key != "labels" && key != "annotations" && key != "finalizers"
	})
	withoutOthers(raw)
	for _, result := range statusOf(raw) {
		if result, ok := result.(map[string]any); ok && result["uid"] == string(s.body.UID()) {
			result["uid"] = "its own"
		}
	}
	return raw
}

// stateFrom returns the state of a decoded object.
func stateFrom(obj *unstructured.Unstructured) (state, error) {
	content, err := json.Marshal(obj)
	if err != nil {
		return state{}, err
	}
	return newState(content)
}

// text returns the entire object.
func (s state) text() string {
	text, _ := json.MarshalIndent(s.body.Raw(), "", "  ")
	return string(text)
}

func statusOf(raw map[string]any) map[string]any {
	status, _ := raw["status"].(map[string]any)
	return status
}

// inherited returns an error if the status has a result of an earlier object of the name.
func (s state) inherited() error {
	for id, result := range statusOf(s.body.Raw()) {
		if result, ok := result.(map[string]any); ok && result["uid"] != nil && result["uid"] != string(s.body.UID()) {
			return fmt.Errorf("the result of %s is of another object", id)
		}
	}
	return nil
}

// withoutStatus returns an essential state without some fields of the status.
func withoutStatus(essential map[string]any, fields []string) map[string]any {
	without := object.Copy(essential).(map[string]any)
	status := statusOf(without)
	for _, field := range fields {
		delete(status, field)
	}
	if len(status) == 0 {
		delete(without, "status")
	}
	return without
}

// withoutItem returns an essential state without an item in the list of the spec, also in the
// base.
func withoutItem(essential map[string]any, item string) map[string]any {
	copied := object.Copy(essential).(map[string]any)
	base, _, _ := unstructured.NestedMap(copied, "metadata", "annotations")
	for _, of := range []any{copied, base[baseKey]} {
		of, _ := of.(map[string]any)
		if spec, ok := of["spec"].(map[string]any); ok {
			items, _ := spec["items"].([]any)
			if spec["items"] = without(items, item); len(without(items, item)) == 0 {
				delete(spec, "items")
			}
		}
	}
	_ = unstructured.SetNestedMap(copied, base, "metadata", "annotations")
	return copied
}

// digest makes a body short enough for a line of the history.
func digest(essence object.Essence) string {
	text, _ := json.Marshal(essence)
	hash := fnv.New32a()
	_, _ = hash.Write(text)
	return fmt.Sprintf("%08x %s", hash.Sum32(), text)
}

func equal(a, b object.Essence) bool {
	return (a == nil) == (b == nil) && object.Equal(a, b)
}

func contains(list []string, text string) bool { return slices.Contains(list, text) }
