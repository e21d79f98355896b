package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What an operator leaves on an object, by its default settings.
const (
	baseAnnotation = "kopf.zalando.org/last-handled-configuration"
	prefix         = "kopf.zalando.org/"
	// startAnnotation has the state with which an open cycle has begun; it is no
	// handler's record.
	startAnnotation = baseAnnotation + "-started"
)

// maxValue bounds what is shown of a value, in bytes.
const maxValue = 200

// fact is something about an object that is worth a sentence when it becomes
// true or changes, and another when it is no more.
type fact struct {
	value, said, unsaid string
}

// story turns the states of one object, one after the other, into sentences.
type story struct {
	facts map[string]fact // nil: there is no object
}

// next tells what has changed; nil is an object that is gone.
func (s *story) next(current *unstructured.Unstructured) []string {
	if current == nil {
		s.facts = nil
		return []string{"is gone"}
	}
	var told []string
	before := s.facts
	s.facts = factsOf(current)
	if before == nil {
		told = append(told, "is there")
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

// factsOf collects the facts under keys that sort as they happen: the finalizer
// first, the results before the baseline.
func factsOf(object *unstructured.Unstructured) map[string]fact {
	facts := map[string]fact{}
	for _, name := range object.GetFinalizers() {
		facts["1 "+name] = fact{name, "has the finalizer " + name + ": it stays until its deletion is handled", "is free of the finalizer " + name}
	}
	if generation := object.GetGeneration(); generation > 1 && object.GetDeletionTimestamp() == nil {
		facts["2"] = fact{fmt.Sprint(generation), fmt.Sprintf("was changed: generation %d", generation), ""}
	}
	if object.GetDeletionTimestamp() != nil {
		facts["3"] = fact{"", "is marked for deletion, and waits for its finalizers", ""}
	}
	for key, value := range object.GetAnnotations() {
		if handler, found := strings.CutPrefix(key, prefix); found && key != baseAnnotation && key != startAnnotation {
			facts["4 "+handler] = progressFact(handler, value)
		}
	}
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	for key, value := range status {
		text := compact(value)
		facts["5 "+key] = fact{text, "status." + key + " = " + text, "status." + key + " is gone"}
	}
	if base, found := object.GetAnnotations()[baseAnnotation]; found {
		facts["6"] = fact{base, "IS HANDLED: the operator remembers this state in the annotation " + baseAnnotation, ""}
	}
	return facts
}

// progress is what is shown of a handler's record.
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
	said := fmt.Sprintf("handler %s (%s): ", handler, p.Purpose)
	switch {
	case p.Success:
		said += "succeeded"
	case p.Failure:
		said += "failed for good: " + p.Message
	case p.Retries > 0:
		said += fmt.Sprintf("attempt %d failed: %s; the next one is due at %s", p.Retries, p.Message, p.Delayed)
	default:
		said += "is under way"
	}
	return fact{record, said, "handler " + handler + ": its record is cleared, the cycle is over"}
}

// isHandled tells whether an operator has handled the object at least once.
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
