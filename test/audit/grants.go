package audit

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/rbac"
)

// Grant is a permission that a role gives to a user. An empty namespace or name means all of them.
type Grant struct {
	rbac.Permission
	User   string
	Reason string // of derived rules
}

// permits reports whether the grant covers what a request needs.
func (g Grant) permits(p rbac.Permission) bool {
	return g.Verb == p.Verb && g.Group == p.Group && g.Resource == p.Resource &&
		(g.Namespace == "" || g.Namespace == p.Namespace) && (g.Name == "" || g.Name == p.Name)
}

// user returns the name of a service account in the cluster.
func user(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

// Grants returns what the roles among the objects give to service accounts.
func Grants(t testing.TB, objects []*unstructured.Unstructured) (found []Grant) {
	t.Helper()
	roles := map[[3]string]rbacv1.ClusterRole{} // by kind, namespace, and name; a Role has the same fields
	for _, object := range objects {
		if kind := object.GetKind(); kind == "ClusterRole" || kind == "Role" {
			roles[[3]string{kind, object.GetNamespace(), object.GetName()}] = as[rbacv1.ClusterRole](t, object)
		}
	}
	for _, object := range objects {
		if !strings.HasSuffix(object.GetKind(), "RoleBinding") || !strings.HasPrefix(object.GetAPIVersion(), rbacv1.GroupName+"/") {
			continue
		}
		binding := as[rbacv1.RoleBinding](t, object)
		of := [3]string{binding.RoleRef.Kind, "", binding.RoleRef.Name}
		if binding.RoleRef.Kind == "Role" {
			of[1] = binding.Namespace
		}
		for _, subject := range binding.Subjects {
			found = append(found, flat(roles[of], Grant{User: user(subject.Namespace, subject.Name), Permission: rbac.Permission{Namespace: binding.Namespace}})...)
		}
	}
	return found
}

func as[T any](t testing.TB, object *unstructured.Unstructured) (typed T) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return typed
}

// flat returns one grant for every verb, resource, and name of the rules.
func flat(role rbacv1.ClusterRole, grant Grant) (all []Grant) {
	reasons := strings.Split(role.Annotations[rbac.ReasonsAnnotation], "\n")
	for i, rule := range role.Rules {
		grant.Reason = ""
		if len(reasons) == len(role.Rules) {
			grant.Reason = reasons[i]
		}
		for _, grant.Group = range rule.APIGroups {
			for _, grant.Resource = range rule.Resources {
				for _, grant.Name = range append(rule.ResourceNames, "")[:max(1, len(rule.ResourceNames))] {
					for _, grant.Verb = range rule.Verbs {
						all = append(all, grant)
					}
				}
			}
		}
	}
	return all
}

// Use is what a verb is for: the reason of a derived rule up to its first colon, or the resource for
// all other rules.
type Use struct{ For, Verb string }

// use returns the use of a grant.
func (g Grant) use() Use {
	if g.isGeneral() {
		return Use{general(g.Reason), g.Verb}
	}
	return Use{g.Resource, g.Verb}
}

// isGeneral reports whether all operators use the permission for the same reason.
func (g Grant) isGeneral() bool { return g.Reason != "" && !strings.HasPrefix(g.Reason, ofHandlers) }

// ofHandlers begins the reasons of the rules that kopf.Needs declares.
const ofHandlers = "Handlers use it with a client"

func general(reason string) string {
	text, _, _ := strings.Cut(reason, ": ")
	return text
}

// purpose returns what grants have in common if it is enough that one of them is used: those of a
// general reason, or of a declaration in several runs of its program. Others stand for themselves.
func (g Grant) purpose() Grant {
	switch {
	case g.isGeneral():
		return Grant{Permission: rbac.Permission{Verb: g.Verb}, Reason: general(g.Reason)}
	case g.Reason != "":
		return Grant{Permission: rbac.Permission{Verb: g.Verb, Group: g.Group, Resource: g.Resource}, Reason: g.Reason}
	default:
		return g
	}
}

// Elsewhere says why the tests of a package do not use a permission, and which test does.
type Elsewhere struct{ Why, Test string }

// Unused returns the grants that no request has used, one for each purpose.
func Unused(grants []Grant, requests []Entry, elsewhere map[Use]Elsewhere) []Grant {
	used := map[Grant]bool{}
	for _, g := range grants {
		used[g.purpose()] = used[g.purpose()] || g.isUsed(requests)
	}
	var unused []Grant
	for _, g := range grants {
		if _, excepted := elsewhere[g.use()]; !excepted && !used[g.purpose()] {
			used[g.purpose()] = true // it is returned once
			unused = append(unused, g)
		}
	}
	return unused
}

// isUsed reports whether a request has used the grant.
func (g Grant) isUsed(requests []Entry) bool {
	return slices.ContainsFunc(requests, func(e Entry) bool {
		return e.User.Username == g.User && !e.isRefused() && slices.ContainsFunc(e.Permissions(), g.permits)
	})
}
