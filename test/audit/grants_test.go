package audit

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/rbac"
)

func TestUnused(t *testing.T) {
	request := Entry{Verb: "patch"}
	request.User.Username = "me"
	request.Object.Group, request.Object.Resource, request.Object.Namespace, request.Object.Name = "g", "rs", "ns", "one"
	applied, refused := request, request
	applied.Response.Code = 201
	refused.Response.Code, refused.Annotations = 403, map[string]string{"authorization.k8s.io/decision": "forbid"}
	grant := func(verb, resource, namespace, name string) Grant {
		return Grant{User: "me", Permission: rbac.Permission{Verb: verb, Group: "g", Resource: resource, Namespace: namespace, Name: name}}
	}
	reasoned := func(g Grant, reason string) Grant {
		g.Reason = reason
		return g
	}
	other := grant("patch", "rs", "", "")
	other.User = "other"
	tests := map[string]struct {
		given   []Grant
		request Entry
		unused  int
	}{
		"by the request":            {[]Grant{grant("patch", "rs", "", "")}, request, 0},
		"by name":                   {[]Grant{grant("patch", "rs", "ns", "one")}, request, 0},
		"another name":              {[]Grant{grant("patch", "rs", "", "two")}, request, 1},
		"another namespace":         {[]Grant{grant("patch", "rs", "other", "")}, request, 1},
		"another verb":              {[]Grant{grant("create", "rs", "", "")}, request, 1},
		"another resource":          {[]Grant{grant("patch", "rs/status", "", "")}, request, 1},
		"another user":              {[]Grant{other}, request, 1},
		"a creation by an apply":    {[]Grant{grant("create", "rs", "", "")}, applied, 0},
		"a refused request":         {[]Grant{grant("patch", "rs", "", "")}, refused, 1},
		"a wildcard is never used":  {[]Grant{grant("*", "rs", "", "")}, request, 1},
		"used elsewhere":            {[]Grant{grant("list", "rs", "", "")}, request, 0},
		"one with the same reason":  {[]Grant{reasoned(grant("patch", "rs", "", ""), "Handled: fn."), reasoned(grant("patch", "others", "", ""), "Handled: gn.")}, request, 0},
		"none with the same reason": {[]Grant{reasoned(grant("get", "rs", "", ""), "Handled: fn."), reasoned(grant("get", "others", "", ""), "Handled: gn.")}, request, 1},
		"each that handlers need":   {[]Grant{reasoned(grant("patch", "rs", "", ""), ofHandlers+", at main.go:7."), reasoned(grant("patch", "others", "", ""), ofHandlers+", at main.go:7.")}, request, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if unused := Unused(test.given, []Entry{test.request}, map[Use]Elsewhere{{"rs", "list"}: {}}); len(unused) != test.unused {
				t.Errorf("got %v", unused)
			}
		})
	}
	if len(Refused([]Entry{request, refused})) != 1 {
		t.Error("the refused request is not found")
	}
}

func TestGrantsOfDerivedRolesHaveReasons(t *testing.T) {
	role := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
		"metadata": map[string]any{"name": "r", "namespace": "ns", "annotations": map[string]any{rbac.ReasonsAnnotation: "One.\nTwo."}},
		"rules": []any{
			map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get", "list"}},
			map[string]any{"apiGroups": []any{"g"}, "resources": []any{"rs"}, "resourceNames": []any{"a", "b"}, "verbs": []any{"get"}},
		},
	}
	binding := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": map[string]any{"name": "r", "namespace": "ns"},
		"roleRef":  map[string]any{"kind": "Role", "name": "r"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "me", "namespace": "system"}},
	}
	got := Grants(t, []*unstructured.Unstructured{{Object: role}, {Object: binding}})
	want := Grant{User: "system:serviceaccount:system:me", Reason: "Two.", Permission: rbac.Permission{Verb: "get", Group: "g", Resource: "rs", Namespace: "ns", Name: "b"}}
	if len(got) != 4 || got[3] != want {
		t.Errorf("got %v", got)
	}
}

func TestNamesOfTests(t *testing.T) {
	for name, want := range map[string]bool{"test/audit.TestNamesOfTests": true, "test/audit.TestNamesOf": false, "test/audit": false, "": false} {
		if got := exists(t, name); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
}
