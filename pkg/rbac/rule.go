package rbac

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rule is a permission, and why it is needed.
type Rule struct {
	Group     string
	Resources []string // plural, with the subresource: "pods/exec"
	Names     []string // of objects; none for all
	Verbs     []string
	Reason    string // a full sentence, or several
}

// Role is a list of rules for one namespace, or for the cluster.
type Role struct {
	Namespace string // empty for the cluster
	Rules     []Rule
}

// verbs has the usual order of verbs.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

func rank(verb string) int {
	if i := slices.Index(verbs, verb); i >= 0 {
		return i
	}
	return len(verbs)
}

// Permits reports whether the rule permits the request of a permission, in a namespace where the
// rule applies.
func (r Rule) Permits(p Permission) bool {
	return r.Group == p.Group && slices.Contains(r.Resources, p.Resource) && slices.Contains(r.Verbs, p.Verb) &&
		(len(r.Names) == 0 || slices.Contains(r.Names, p.Name))
}

// Equal reports whether both rules permit the same for the same reason.
func (r Rule) Equal(other Rule) bool {
	return r.Group == other.Group && r.Reason == other.Reason && slices.Equal(r.Resources, other.Resources) &&
		slices.Equal(r.Names, other.Names) && slices.Equal(r.Verbs, other.Verbs)
}

// roles collects the rules of several roles.
type roles struct {
	list []Role
}

// add adds a rule to the role of a namespace. Rules with the same reason for the same verbs
// become one.
func (r *roles) add(namespace string, rule Rule) {
	rule.Verbs = slices.Clone(rule.Verbs)
	slices.SortFunc(rule.Verbs, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	rule.Verbs = slices.Compact(rule.Verbs)
	i := slices.IndexFunc(r.list, func(role Role) bool { return role.Namespace == namespace })
	if i < 0 {
		r.list = append(r.list, Role{Namespace: namespace})
		i = len(r.list) - 1
	}
	role := &r.list[i]
	for n := range role.Rules {
		known := &role.Rules[n]
		if known.Group == rule.Group && known.Reason == rule.Reason && slices.Equal(known.Verbs, rule.Verbs) && slices.Equal(known.Names, rule.Names) {
			for _, resource := range rule.Resources {
				if !slices.Contains(known.Resources, resource) {
					known.Resources = append(known.Resources, resource)
				}
			}
			return
		}
	}
	role.Rules = append(role.Rules, rule)
}

// sorted returns the roles: that of the cluster first.
func (r *roles) sorted() []Role {
	slices.SortStableFunc(r.list, func(a, b Role) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return r.list
}

// Permits reports whether one of the roles permits the request.
func Permits(all []Role, p Permission) bool {
	return slices.ContainsFunc(all, func(role Role) bool {
		return (role.Namespace == "" || role.Namespace == p.Namespace) &&
			slices.ContainsFunc(role.Rules, func(r Rule) bool { return r.Permits(p) })
	})
}

// Add adds what was observed to derived roles, except what these permit already.
func Add(derived []Role, observed []Permission, reason string) []Role {
	all := roles{}
	for _, role := range derived {
		all.list = append(all.list, Role{role.Namespace, slices.Clone(role.Rules)})
	}
	clustered := len(derived) == 0 || slices.ContainsFunc(derived, func(role Role) bool { return role.Namespace == "" && servesObjects(role) })
	type place struct {
		namespace string
		resource  schema.GroupResource
	}
	used := map[place][]string{}
	var order []place
	for _, p := range observed {
		if Permits(derived, p) || isDispensable(p) {
			continue
		}
		at := place{p.Namespace, schema.GroupResource{Group: p.Group, Resource: p.Resource}}
		if clustered {
			at.namespace = ""
		}
		if used[at] == nil {
			order = append(order, at)
		}
		used[at] = append(used[at], p.Verb)
	}
	for _, at := range order {
		all.add(at.namespace, Rule{Group: at.resource.Group, Resources: []string{at.resource.Resource}, Verbs: used[at], Reason: reason})
	}
	return all.sorted()
}

// isDispensable reports whether an operator works without the permission: it has a substitute for
// it, or everyone has it.
func isDispensable(p Permission) bool {
	return p.Group == definitionsGroup && p.Resource == "customresourcedefinitions" && (p.Verb == "list" || p.Verb == "watch") ||
		strings.HasPrefix(p.Resource, "selfsubject")
}

// servesObjects reports whether the role is for objects in all namespaces.
func servesObjects(role Role) bool {
	return slices.ContainsFunc(role.Rules, func(r Rule) bool { return strings.HasPrefix(r.Reason, servedReason) })
}
