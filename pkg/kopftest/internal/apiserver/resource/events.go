package resource

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// eventsGroup is the newer group of events. Both groups have the same objects, with other
// names of the fields.
const eventsGroup = "events.k8s.io"

// eventFields are the names of fields in the core group, and in the newer one.
var eventFields = map[string]string{
	"involvedObject": "regarding", "message": "note", "reportingComponent": "reportingController",
	"source": "deprecatedSource", "firstTimestamp": "deprecatedFirstTimestamp",
	"lastTimestamp": "deprecatedLastTimestamp", "count": "deprecatedCount",
}

// renamedEvents are the rules of events in the newer group.
type renamedEvents struct{ *builtin }

// Convert renames the fields of a stored event.
func (renamedEvents) Convert(stored *unstructured.Unstructured) *unstructured.Unstructured {
	return renamed(stored, eventsGroup, eventFields)
}

// Store renames the fields of an event of the newer group.
func (renamedEvents) Store(object *unstructured.Unstructured) *unstructured.Unstructured {
	back := map[string]string{}
	for older, newer := range eventFields {
		back[newer] = older
	}
	return renamed(object, "", back)
}

func renamed(object *unstructured.Unstructured, group string, names map[string]string) *unstructured.Unstructured {
	content := maps.Clone(object.Object)
	for from, to := range names {
		if value, ok := content[from]; ok {
			delete(content, from)
			content[to] = value
		}
	}
	return withVersion(&unstructured.Unstructured{Object: content}, schema.GroupVersion{Group: group, Version: "v1"})
}
