package deployment

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// permission is granted by a role or needed by a request. In a role, an empty namespace or
// name means all of them.
type permission struct{ verb, group, resource, namespace, name string }

// given returns the permissions of a service account from the roles among the objects.
func given(t *testing.T, account string, all []*unstructured.Unstructured) (found []permission) {
	t.Helper()
	rules := map[rbacv1.RoleRef][]rbacv1.PolicyRule{}
	for _, role := range of[rbacv1.ClusterRole](t, "ClusterRole", all) {
		rules[rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}] = role.Rules
	}
	for _, role := range of[rbacv1.Role](t, "Role", all) {
		rules[rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}] = role.Rules
	}
	bind := func(namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		if slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return "system:serviceaccount:"+s.Namespace+":"+s.Name == account }) {
			found = append(found, flat(namespace, rules[ref])...)
		}
	}
	for _, binding := range of[rbacv1.ClusterRoleBinding](t, "ClusterRoleBinding", all) {
		bind("", binding.RoleRef, binding.Subjects)
	}
	for _, binding := range of[rbacv1.RoleBinding](t, "RoleBinding", all) {
		bind(binding.Namespace, binding.RoleRef, binding.Subjects)
	}
	return found
}

// flat returns one permission for every verb, resource, and name of the rules.
func flat(namespace string, rules []rbacv1.PolicyRule) (all []permission) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range append(rule.ResourceNames, "")[:max(1, len(rule.ResourceNames))] {
					for _, verb := range rule.Verbs {
						all = append(all, permission{verb, group, resource, namespace, name})
					}
				}
			}
		}
	}
	return all
}

// permits reports whether the granted permission covers the needed one.
func (p permission) permits(taken permission) bool {
	return p.verb == taken.verb && p.group == taken.group && p.resource == taken.resource &&
		(p.namespace == "" || p.namespace == taken.namespace) && (p.name == "" || p.name == taken.name)
}

// rare contains permissions that an operator needs, although not in these tests, by verb and
// resource, with the reason.
var rare = map[[2]string]string{
	{"list", "kopfpeerings"}:              streamed,
	{"list", "clusterkopfpeerings"}:       streamed,
	{"list", "customresourcedefinitions"}: streamed,
	{"list", "configmaps"}:                streamed,
	{"delete", "configmaps"}:              "a handler returns other children than before",
	{"update", "secrets"}:                 "a certificate is replaced after a month",
}

const streamed = "API servers from 1.34 on list by watches; older ones, and those that are overloaded, do not"

// unused returns the permissions that no request has used and that are not rare.
func unused(given []permission, requests []entry) []permission {
	return slices.DeleteFunc(slices.Clone(given), func(p permission) bool {
		return rare[[2]string{p.verb, p.resource}] != "" || slices.ContainsFunc(requests, func(request entry) bool {
			return slices.ContainsFunc(request.permissions(), p.permits)
		})
	})
}

func TestUnusedPermissionsAreFound(t *testing.T) {
	request := entry{Verb: "patch"}
	request.Object.Group, request.Object.Resource, request.Object.Namespace, request.Object.Name = "g", "rs", "ns", "one"
	applied := request
	applied.Response.Code = 201
	tests := map[string]struct {
		given   permission
		request entry
		used    bool
	}{
		"by the request":           {permission{"patch", "g", "rs", "", ""}, request, true},
		"by name":                  {permission{"patch", "g", "rs", "ns", "one"}, request, true},
		"another name":             {permission{"patch", "g", "rs", "", "two"}, request, false},
		"another namespace":        {permission{"patch", "g", "rs", "other", ""}, request, false},
		"another verb":             {permission{"create", "g", "rs", "", ""}, request, false},
		"another resource":         {permission{"patch", "g", "rs/status", "", ""}, request, false},
		"a creation by an apply":   {permission{"create", "g", "rs", "", ""}, applied, true},
		"a wildcard is never used": {permission{"*", "g", "rs", "", ""}, request, false},
		"a rare permission":        {permission{"list", "kopf.dev", "kopfpeerings", "", ""}, request, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			left := unused([]permission{test.given}, []entry{test.request})
			if used := len(left) == 0; used != test.used {
				t.Errorf("got %v", used)
			}
		})
	}
}
