// Package condition reads and changes the conditions in the status of an object, as the
// conventions of the Kubernetes API define them: a list with one entry of each type.
//
// The functions never modify what they are given, and keep the entries and the fields that
// they do not know. That is why meta.SetStatusCondition is not used: it decodes the entries, so it loses
// what it does not know and fails for an entry that others have written wrongly.
package condition

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The standard conditions, which kubectl and kstatus understand.
const (
	Ready       = "Ready"
	Reconciling = "Reconciling"
	Stalled     = "Stalled"
)

// List contains the conditions of an object: JSON objects, and whatever else is there.
type List []any

// Of returns the conditions of an object.
func Of(body map[string]any) List {
	status, _ := body["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	return list
}

// Get returns the condition of the type, or nil if there is none.
func (l List) Get(kind string) map[string]any {
	if i := l.index(kind); i >= 0 {
		condition, _ := l[i].(map[string]any)
		return condition
	}
	return nil
}

// Is reports whether the condition of the type is true.
func (l List) Is(kind string) bool { return l.Get(kind)["status"] == string(metav1.ConditionTrue) }

// Without returns the conditions of all other types.
func (l List) Without(kind string) List {
	i := l.index(kind)
	if i < 0 {
		return l
	}
	return slices.Concat(l[:i:i], l[i+1:])
}

// With returns the conditions with this one, in place of that of the same type. Its time of
// transition is the given one if its status differs from before, unless it has a time itself.
func (l List) With(c metav1.Condition, now time.Time) List {
	i := l.index(c.Type)
	entry := map[string]any{}
	if i >= 0 {
		former, _ := l[i].(map[string]any)
		for key, value := range former {
			entry[key] = value
		}
	}
	if entry["status"] != string(c.Status) || entry["lastTransitionTime"] == nil {
		entry["lastTransitionTime"] = now.UTC().Format(time.RFC3339)
	}
	if !c.LastTransitionTime.IsZero() {
		entry["lastTransitionTime"] = c.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	entry["type"] = c.Type
	entry["status"] = string(c.Status)
	entry["reason"] = c.Reason
	entry["message"] = c.Message
	delete(entry, "observedGeneration")
	if c.ObservedGeneration != 0 {
		entry["observedGeneration"] = c.ObservedGeneration
	}
	if i < 0 {
		return append(slices.Clip(l), entry)
	}
	changed := slices.Clone(l)
	changed[i] = entry
	return changed
}

func (l List) index(kind string) int {
	return slices.IndexFunc(l, func(item any) bool { known, _ := item.(map[string]any); return known["type"] == kind })
}

// Set sets a condition in an object; see List.With. It modifies the object.
func Set(body map[string]any, c metav1.Condition, now time.Time) error {
	status, isMapping := body["status"].(map[string]any)
	if !isMapping && body["status"] != nil {
		return errors.New("the status is not a mapping")
	}
	if _, isList := status["conditions"].([]any); !isList && status["conditions"] != nil {
		return errors.New("status.conditions is not a list")
	}
	list := Of(body).With(c, now)
	if status == nil {
		status = map[string]any{}
		body["status"] = status
	}
	status["conditions"] = []any(list)
	return nil
}

// Validate returns an error if the API server would reject the condition in most resources.
func Validate(c metav1.Condition) error {
	switch {
	case c.Type == "":
		return errors.New("a condition has no type")
	case c.Status != metav1.ConditionTrue && c.Status != metav1.ConditionFalse && c.Status != metav1.ConditionUnknown:
		return fmt.Errorf("the condition %s has the status %q: it must be True, False, or Unknown", c.Type, c.Status)
	case c.Reason == "":
		return fmt.Errorf("the condition %s has no reason: give one word in CamelCase", c.Type)
	default:
		return nil
	}
}
