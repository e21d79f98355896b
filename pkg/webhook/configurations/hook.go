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

// group is a set of hooks that become one webhook, with the rules of all of them.
type group struct {
	Hook
	rules []admissionregistrationv1.RuleWithOperations
}

// groupHooks groups the hooks that differ only in their rules.
func groupHooks(hooks []Hook) []*group {
	var groups []*group
	for _, hook := range hooks {
		i := slices.IndexFunc(groups, func(g *group) bool { return g.accepts(hook) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{Hook: hook})
		}
		groups[i].add(hook.rule())
	}
	return groups
}

func (g *group) accepts(h Hook) bool {
	return g.ID == h.ID && g.Validating == h.Validating && g.Persistent == h.Persistent &&
		g.SideEffects == h.SideEffects && g.IgnoreFailures == h.IgnoreFailures &&
		isEqual(g.LabelSelector, h.LabelSelector)
}

func (g *group) add(rule admissionregistrationv1.RuleWithOperations) {
	at, found := slices.BinarySearchFunc(g.rules, rule, func(a, b admissionregistrationv1.RuleWithOperations) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.APIVersions, b.APIVersions),
			slices.Compare(a.Resources, b.Resources), slices.Compare(a.Operations, b.Operations))
	})
	if !found {
		g.rules = slices.Insert(g.rules, at, rule)
	}
}

func (h Hook) rule() admissionregistrationv1.RuleWithOperations {
	name := h.Resource.Plural
	scope := admissionregistrationv1.AllScopes
	if h.Subresource != "" {
		name += "/" + h.Subresource
	}
	return admissionregistrationv1.RuleWithOperations{Operations: h.operations(), Rule: admissionregistrationv1.Rule{
		APIGroups: []string{h.Resource.Group}, APIVersions: []string{h.Resource.Version}, Resources: []string{name}, Scope: &scope,
	}}
}

func (h Hook) operations() []admissionregistrationv1.OperationType {
	if len(h.Operations) == 0 {
		return []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
	}
	var sorted []admissionregistrationv1.OperationType
	for _, operation := range h.Operations {
		sorted = append(sorted, admissionregistrationv1.OperationType(operation))
	}
	slices.Sort(sorted)
	return slices.Compact(sorted)
}
