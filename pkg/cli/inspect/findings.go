package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// others says which other operators keep a state on the object.
func (s *situation) others() []string {
	var notes []string
	for key := range s.object.GetAnnotations() {
		prefix, name, _ := strings.Cut(key, "/")
		if strings.HasPrefix(name, "last-handled-configuration") && prefix != s.prefix && prefix != "kubectl.kubernetes.io" {
			notes = append(notes, fmt.Sprintf("Another operator with the prefix %s handles the object, too; what it does is not shown.", prefix))
		}
	}
	slices.Sort(notes)
	return notes
}

// outsideScope says that the operator does not see the objects of a namespace.
func (c *Cluster) outsideScope(namespace string) []string {
	scope := selector.Namespaces(c.Settings.Scope.Namespaces)
	if namespace == "" || scope.Match(namespace) {
		return nil
	}
	return []string{fmt.Sprintf("The operator serves the namespaces %s, and %s is none of them: it does not see the object.", strings.Join(scope, ", "), namespace)}
}

// wants describes the filter of a handler that does not match, with the value of the object.
func (s *situation) wants(h *handler.Declaration, m handler.Mismatch) string {
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
		return fmt.Sprintf("the field %s is %s, and the handler wants %s", m.Key, s.valueAt(h), want)
	case handler.FilterWhen:
		return fmt.Sprintf("the function of When at %s returns false, called here", m.Key)
	case handler.FilterWhenObject:
		return "the function of WhenObject returns false, called here"
	default:
		return m.String() + " does not match"
	}
}

// hasDeletionHandlers reports whether handlers hold the deletion.
func (s *situation) hasDeletionHandlers() bool {
	return slices.ContainsFunc(s.Handlers, func(h reconcile.InspectedHandler) bool { return h.HoldsDeletion() && h.OutOfScope.Matches() })
}

// isDeleted reports whether the object is being deleted.
func (s *situation) isDeleted() bool { return s.object.GetDeletionTimestamp() != nil }
