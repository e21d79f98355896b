package discovery

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// UnwatchableError says that a selector has found only resources whose objects the API
// server does not offer to list and watch.
type UnwatchableError struct {
	Selector selector.Selector
	Found    []selector.Resource
}

func (e *UnwatchableError) Error() string {
	return fmt.Sprintf("%q selects resources that cannot be served, because the API server does not offer to list and watch them: %s",
		e.Selector, join(e.Found, func(r selector.Resource) string {
			return fmt.Sprintf("%s (only %s)", r, strings.Join(r.Verbs, ", "))
		}))
}

// UnpatchableError says that a resource is not served because its handlers write to its
// objects, but the API server does not offer to patch them.
type UnpatchableError struct{ Resource SelectedResource }

func (e *UnpatchableError) Error() string {
	return fmt.Sprintf("%s (by %v) cannot be served, because its handlers write to the objects, but the API server does not offer to patch them (only %s): "+
		"declare only event handlers and indices for it", e.Resource.Resource, e.Resource.Selectors, strings.Join(e.Resource.Verbs, ", "))
}

// SelectionError says that the function of a selector has failed. What the selector has found before is
// served on.
type SelectionError struct {
	Selector selector.Selector
	Err      error
}

func (e *SelectionError) Error() string {
	return fmt.Sprintf("the function of the selector %q has failed, so that it finds no other resources: %s", e.Selector, e.Err)
}

// Unwrap returns the reason.
func (e *SelectionError) Unwrap() error { return e.Err }

// IncompleteError says that a selector cannot be resolved, or not completely, while
// some API groups are unavailable.
type IncompleteError struct {
	Selector selector.Selector
	// Unavailable are the group versions that matter to the selector.
	Unavailable []schema.GroupVersion
	// Failed holds the reasons.
	Failed map[schema.GroupVersion]error
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("%q cannot be served completely while some API groups are unavailable (%s): "+
		"see kubectl get apiservices; selectors that name another group are not affected",
		e.Selector, join(e.Unavailable, func(gv schema.GroupVersion) string { return fmt.Sprintf("%s: %v", gv, e.Failed[gv]) }))
}

// Unwrap returns the reasons why the groups are unavailable.
func (e *IncompleteError) Unwrap() []error {
	var reasons []error
	for _, gv := range e.Unavailable {
		reasons = append(reasons, e.Failed[gv])
	}
	return reasons
}

// MultipleVersionsError says that different selectors, or a callback, have selected
// several versions of one resource, of which one is served.
type MultipleVersionsError struct{ Served SelectedResource }

func (e *MultipleVersionsError) Error() string {
	name := func(s SelectedResource) string { return fmt.Sprintf("%s (by %v)", s.Resource, s.Selectors) }
	return fmt.Sprintf("%s is served, so the handlers of the same objects in other versions are not called: %s; "+
		"objects with deletion handlers among them are not deleted until then; declare all handlers for one version",
		name(e.Served), join(e.Served.Unserved, name))
}

// join lists the items in a message.
func join[T any](items []T, describe func(T) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = describe(item)
	}
	return strings.Join(texts, ", ")
}
