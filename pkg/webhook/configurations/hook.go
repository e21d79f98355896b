package configurations

import (
	"cmp"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Hook is an admission handler for one resource. Hooks of the same handler become
// one webhook with a rule for each resource, if nothing else in them differs.
type Hook struct {
	// ID is the id of the handler: "check/spec.field".
	ID string
	// Validating hooks belong to the validating configuration, others to the mutating
	// one.
	Validating bool
	// Operations are "CREATE", "UPDATE", "DELETE", "CONNECT". Empty: all.
	Operations []string
	// Subresource is "status", or "*" for all of them. Empty: the resource itself.
	Subresource string
	// Resource is the resource that the handler is declared for.
	Resource selector.Resource
	// Persistent hooks stay in the configuration when the operator exits.
	Persistent bool
	// SideEffects is set if the handler has side effects, which it must avoid in a dry
	// run.
	SideEffects bool
	// IgnoreFailures admits requests while the operator cannot be called.
	IgnoreFailures bool
	// LabelSelector restricts the hook to objects with these labels, before or after
	// the change. Nil: all objects.
	LabelSelector *metav1.LabelSelector
}

func (h Hook) rule() admissionregistrationv1.RuleWithOperations {
	name := h.Resource.Plural
	if h.Subresource != "" {
		name += "/" + h.Subresource
	}
	operations := []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
	if len(h.Operations) > 0 {
		operations = nil
		for _, operation := range h.Operations {
			operations = append(operations, admissionregistrationv1.OperationType(operation))
		}
		slices.Sort(operations)
		operations = slices.Compact(operations)
	}
	return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{h.Resource.Group}, APIVersions: []string{h.Resource.Version}, Resources: []string{name}, Scope: new(admissionregistrationv1.AllScopes),
	}}
}

// group is a set of hooks that become one webhook, with the rules of all of them.
type group struct {
	Hook
	rules []admissionregistrationv1.RuleWithOperations
}

// groupHooks groups the hooks that differ only in their rules. The rules are sorted.
func groupHooks(hooks []Hook) []*group {
	var groups []*group
	for _, h := range hooks {
		i := slices.IndexFunc(groups, func(g *group) bool {
			return g.ID == h.ID && g.Validating == h.Validating && g.Persistent == h.Persistent &&
				g.SideEffects == h.SideEffects && g.IgnoreFailures == h.IgnoreFailures &&
				isEqual(g.LabelSelector, h.LabelSelector)
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{Hook: h})
		}
		g := groups[i]
		at, found := slices.BinarySearchFunc(g.rules, h.rule(), func(a, b admissionregistrationv1.RuleWithOperations) int {
			return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.APIVersions, b.APIVersions),
				slices.Compare(a.Resources, b.Resources), slices.Compare(a.Operations, b.Operations))
		})
		if !found {
			g.rules = slices.Insert(g.rules, at, h.rule())
		}
	}
	return groups
}
