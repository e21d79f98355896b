package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"

	"github.com/kopf-go/kopf/internal/condition"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/inspection"
	"github.com/kopf-go/kopf/pkg/storage"
)

// others says which other operators keep a state on the object. Nothing is known if a storage of this
// operator does not say which annotations it has.
func (s *subject) others() []string {
	if len(storage.Irremovable(s.diffBase)) > 0 {
		return nil
	}
	shared := ""
	if s.HasFinalizer || s.NeedsFinalizer {
		shared = fmt.Sprintf(" If it uses the finalizer %s, too, each of them removes it without waiting for the other: set different ones in Settings.Persistence.Finalizer.", s.finalizer)
	}
	own := annotationsOf(s.diffBase, s.Body)
	var notes []string
	for key := range s.object.GetAnnotations() {
		prefix, name, _ := strings.Cut(key, "/")
		if !strings.HasPrefix(name, storage.DefaultKey) || prefix == "kubectl.kubernetes.io" {
			continue
		}
		if isBase := annotationsOf(storage.AnnotationsDiffBase{Prefix: prefix}, s.Body)[key]; isBase && !own[key] {
			notes = append(notes, fmt.Sprintf("Another operator with the prefix %s handles the object, too; what it does is not shown.%s", prefix, shared))
		}
	}
	slices.Sort(notes)
	return notes
}

// annotationsOf returns the annotations that a storage has on an object.
func annotationsOf(of storage.DiffBase, body *object.Body) map[string]bool {
	into := storage.Patch{}
	found := map[string]bool{}
	if remover, ok := of.(storage.TraceRemover); ok {
		remover.RemoveTraces(body, into)
	}
	annotations, _, _ := unstructured.NestedMap(into, "metadata", "annotations")
	for key := range annotations {
		found[key] = true
	}
	return found
}

// outsideScope says that the operator does not see the objects of a namespace.
func (c *Cluster) outsideScope(namespace string) []string {
	if namespace == "" || c.isServed(namespace) {
		return nil
	}
	return []string{fmt.Sprintf("The operator serves the namespaces %s, and %s is none of them: it does not see the object.", strings.Join(c.Settings.Scope.Namespaces, ", "), namespace)}
}

// unselected says that the operator does not see an object, because it does not match the selectors of the settings. Only
// the API server knows what they select.
func (c *Cluster) unselected(ctx context.Context, found discovery.SelectedResource, s *subject) (holds []string, err error) {
	selection, named := c.selection(found)
	if named == "" {
		return nil, nil
	}
	byName := fields.OneTermEqualSelector(metav1.ObjectNameField, s.object.GetName()).String()
	selection.FieldSelector = strings.TrimSuffix(byName+","+selection.FieldSelector, ",")
	list, err := c.apiOf(found, s.object.GetNamespace()).List(ctx, selection)
	switch {
	case apierrors.IsBadRequest(err):
		return []string{fmt.Sprintf("The operator watches no objects of this resource: the API server refuses %s: %v.", named, err)}, nil
	case err != nil:
		return nil, fmt.Errorf("the objects that match %s cannot be listed: %w", named, err)
	case len(list.Items) > 0:
		return nil, nil
	case s.HasFinalizer:
		return []string{fmt.Sprintf("The operator watches only the objects that match %s, and this one does not: the operator does not see it. It has the finalizer from before, so its deletion waits until it matches again, or the finalizer %s is removed.", named, s.finalizer)}, nil
	default:
		return []string{fmt.Sprintf("The operator watches only the objects that match %s, and this one does not: the operator does not see it.", named)}, nil
	}
}

// selection returns which objects of a resource the operator watches, and the names of the settings that say so. Requests
// are answered for all objects.
func (c *Cluster) selection(found discovery.SelectedResource) (selection metav1.ListOptions, named string) {
	if !slices.ContainsFunc(c.resolved.Resources, func(s discovery.SelectedResource) bool { return s.GVR() == found.GVR() }) {
		return selection, ""
	}
	selection.LabelSelector, selection.FieldSelector = c.Settings.Watching.Selectors(found.Resource)
	var selectors []string
	for _, one := range []struct{ setting, text string }{{"LabelSelectors", selection.LabelSelector}, {"FieldSelectors", selection.FieldSelector}} {
		if one.text != "" {
			selectors = append(selectors, fmt.Sprintf("settings.Watching.%s (%s)", one.setting, one.text))
		}
	}
	return selection, strings.Join(selectors, " and ")
}

// apiOf returns the API of the objects of a resource, in a namespace if the resource has namespaces.
func (c *Cluster) apiOf(found discovery.SelectedResource, namespace string) dynamic.ResourceInterface {
	if found.Namespaced {
		return c.objects.Resource(found.GVR()).Namespace(namespace)
	}
	return c.objects.Resource(found.GVR())
}

// wants describes the filter of a handler that does not match, with the value of the object.
func (s *subject) wants(h *handler.Declaration, m handler.Mismatch) string {
	switch m.Filter {
	case handler.FilterLabel:
		return fmt.Sprintf("the label %s is %s, and the handler wants %s", m.Key, quoted(s.object.GetLabels(), m.Key), h.Labels[m.Key])
	case handler.FilterAnnotation:
		return fmt.Sprintf("the annotation %s is %s, and the handler wants %s", m.Key, quoted(s.object.GetAnnotations(), m.Key), h.Annotations[m.Key])
	case handler.FilterValue:
		want := h.Value
		if want.IsZero() {
			want = handler.Present()
		}
		return fmt.Sprintf("the field %s is %s, and the handler wants %s", m.Key, s.valueAt(s.object.Object, h), want)
	case handler.FilterValueBefore:
		return fmt.Sprintf("the field %s was %s before, and the handler wants %s there", m.Key, s.valueAt(s.Old, h), h.ValueBefore)
	case handler.FilterValueAfter:
		return fmt.Sprintf("the field %s is %s now, and the handler wants %s", m.Key, s.valueAt(s.New, h), h.ValueAfter)
	case handler.FilterWhen:
		return fmt.Sprintf("the function of When at %s returns false for the object as it is now", m.Key)
	case handler.FilterWhenObject:
		return "the function of WhenObject returns false for the object as it is now"
	default:
		return m.String() + " does not match"
	}
}

// isDeleted reports whether the object is being deleted.
func (s *subject) isDeleted() bool { return s.object.GetDeletionTimestamp() != nil }

// declaresConditions reports whether the operator writes the conditions of the object.
func (s *subject) declaresConditions() bool {
	return slices.ContainsFunc(s.Handlers, func(h inspection.Handler) bool { return h.Kind == handler.Conditions })
}

// hasFailedBefore reports whether the conditions say that a handler has failed in an earlier cycle,
// and whether it still concerns the object.
func (s *subject) hasFailedBefore(h inspection.Handler) bool {
	_, failed := s.Failed[h.ID]
	return failed && !s.isDeleted()
}

// failedHandlers returns the ids of the handlers that have failed for good, as the conditions and the revisions
// of the object say.
func (s *subject) failedHandlers() []string {
	names := map[string]string{}
	maps.Copy(names, s.Failed)
	for _, h := range s.Handlers {
		if h.RevisionFailed && h.RevisionMark == h.Revision {
			names[h.Top().ID] = ""
		}
		if message, failed := s.Failed[h.ID]; failed {
			delete(names, h.ID)
			names[h.Top().ID] = message // a function of children has several parts
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// conditions says what the standard conditions of the object are.
func (s *subject) conditions() []string {
	list := condition.Of(s.object.Object)
	var lines []string
	told := ""
	for _, kind := range []string{condition.Stalled, condition.Reconciling, condition.Ready} {
		c := list.Get(kind)
		if c == nil {
			continue
		}
		reason, _ := c["reason"].(string)
		message, _ := c["message"].(string)
		transition, _ := c["lastTransitionTime"].(string)
		since := ""
		if t, err := time.Parse(time.RFC3339, transition); err == nil {
			since = " since " + s.at(t)
		}
		if observed, known := c["observedGeneration"].(int64); known && observed != s.object.GetGeneration() {
			since += fmt.Sprintf(" (about the generation %d, and the object has %d)", observed, s.object.GetGeneration())
		}
		line := fmt.Sprintf("%s is %v%s, with the reason %s", kind, c["status"], since, reason)
		if message != "" && message != told { // Ready repeats that of the others
			line += ": " + strings.TrimSuffix(message, ".")
		}
		told = message
		lines = append(lines, line)
	}
	if len(lines) > 0 && !s.declaresConditions() {
		lines = append(lines, "This program does not declare kopf.Conditions for the object: another program, or a handler, has written them.")
	}
	return lines
}
