package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The annotations that an operator with default settings writes.
const (
	baseAnnotation = "kopf.zalando.org/last-handled-configuration"
	prefix         = "kopf.zalando.org/"
	// startAnnotation contains the state at the start of an open cycle. It is not the
	// record of a handler.
	startAnnotation = baseAnnotation + "-started"
)

// maxValue is the number of bytes of a value that are shown.
const maxValue = 200

// fact is a property of an object. It has a sentence for when it becomes true or
// changes, and another one for when it is no longer true.
type fact struct {
	value, said, unsaid string
}

// story turns the successive states of one object into sentences.
type story struct {
	facts map[string]fact // nil: the object does not exist
}

// next returns sentences about the changes since the previous state. A nil state
// stands for a deleted object.
func (s *story) next(current *unstructured.Unstructured) []string {
	if current == nil {
		s.facts = nil
		return []string{"is deleted"}
	}
	var told []string
	before := s.facts
	s.facts = factsOf(current)
	if before == nil {
		told = append(told, "exists")
	}
	for _, key := range slices.Sorted(maps.Keys(s.facts)) {
		if was, known := before[key]; !known || was.value != s.facts[key].value {
			told = append(told, s.facts[key].said)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, still := s.facts[key]; !still {
			told = append(told, before[key].unsaid)
		}
	}
	return slices.DeleteFunc(told, func(sentence string) bool { return sentence == "" })
}

// factsOf collects the facts under keys that sort in the order of events: the
// finalizer first, the results before the diff base.
func factsOf(object *unstructured.Unstructured) map[string]fact {
	facts := map[string]fact{}
	for _, name := range object.GetFinalizers() {
		facts["1 "+name] = fact{name, "has the finalizer " + name + ": the object stays until its deletion is handled", "no longer has the finalizer " + name}
	}
	if generation := object.GetGeneration(); generation > 1 && object.GetDeletionTimestamp() == nil {
		facts["2"] = fact{fmt.Sprint(generation), fmt.Sprintf("changed: generation %d", generation), ""}
	}
	if object.GetDeletionTimestamp() != nil {
		facts["3"] = fact{"", "is marked for deletion and waits for its finalizers", ""}
	}
	for key, value := range object.GetAnnotations() {
		if handler, found := strings.CutPrefix(key, prefix); found && key != baseAnnotation && key != startAnnotation {
			facts["4 "+handler] = progressFact(handler, value)
		}
	}
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	for key, value := range status {
		text := compact(value)
		facts["5 "+key] = fact{text, "status." + key + " = " + text, "status." + key + " is removed"}
	}
	if base, found := object.GetAnnotations()[baseAnnotation]; found {
		facts["6"] = fact{base, "IS HANDLED: the operator stored this state in the annotation " + baseAnnotation, ""}
	}
	return facts
}

// progress holds the fields of a handler's record that are shown.
type progress struct {
	Purpose, Message, Delayed string
	Retries                   int
	Success, Failure          bool
}

func progressFact(handler, record string) fact {
	var p progress
	if err := json.Unmarshal([]byte(record), &p); err != nil {
		return fact{record, "annotation " + prefix + handler + " = " + record, ""}
	}
	said := fmt.Sprintf("record %s (%s): ", handler, p.Purpose)
	switch {
	case p.Success:
		said += "succeeded"
	case p.Failure:
		said += "failed permanently: " + p.Message
	case p.Retries > 0:
		said += fmt.Sprintf("attempt %d failed: %s; the next attempt is due at %s", p.Retries, p.Message, p.Delayed)
	default:
		said += "is running"
	}
	return fact{record, said, "record " + handler + ": the cycle is finished, and its record is removed"}
}

// isHandled reports whether an operator has handled the object at least once.
func isHandled(object *unstructured.Unstructured) bool {
	if object == nil {
		return false
	}
	_, found := object.GetAnnotations()[baseAnnotation]
	return found
}

func eventSentence(event *unstructured.Unstructured) string {
	text := func(field string) string {
		value, _, _ := unstructured.NestedString(event.Object, field)
		return value
	}
	return fmt.Sprintf("%s %s: %s", text("type"), text("reason"), text("message"))
}

func compact(value any) string {
	text, err := json.Marshal(value)
	if err != nil || len(text) > maxValue {
		return fmt.Sprintf("%.*s…", maxValue, text)
	}
	return string(text)
}
