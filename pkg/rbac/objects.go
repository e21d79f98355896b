package rbac

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ReasonsAnnotation is the annotation of roles with the reason of each rule, one in a line.
const ReasonsAnnotation = "kopf.dev/reasons"

// Objects returns the derived roles, with bindings for the account, and what could not be derived.
func Objects(in Input, account Account) (objects []runtime.Object, problems []error) {
	roles, problems := Derive(in)
	name := nameOf(in, account)
	for _, role := range roles {
		meta := metav1.ObjectMeta{Name: name, Namespace: role.Namespace}
		of := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
		if role.Namespace == "" {
			of.Kind = "ClusterRole"
		}
		objects = append(objects, role.object(of.Kind, meta))
		if account.Name != "" {
			subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}}
			objects = append(objects, bindingObject(meta, of, subjects))
		}
	}
	return objects, problems
}

// object returns the Role or the ClusterRole.
func (r Role) object(kind string, meta metav1.ObjectMeta) runtime.Object {
	var rules []rbacv1.PolicyRule
	var reasons []string
	for _, rule := range r.Rules {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{rule.Group}, Resources: rule.Resources, ResourceNames: rule.Names, Verbs: rule.Verbs})
		reasons = append(reasons, rule.Reason)
	}
	meta.Annotations = map[string]string{ReasonsAnnotation: strings.Join(reasons, "\n")}
	of := metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	if kind == "Role" {
		return &rbacv1.Role{TypeMeta: of, ObjectMeta: meta, Rules: rules}
	}
	return &rbacv1.ClusterRole{TypeMeta: of, ObjectMeta: meta, Rules: rules}
}

// bindingObject returns the RoleBinding or the ClusterRoleBinding.
func bindingObject(meta metav1.ObjectMeta, of rbacv1.RoleRef, subjects []rbacv1.Subject) runtime.Object {
	kind := metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: of.Kind + "Binding"}
	if of.Kind == "Role" {
		return &rbacv1.RoleBinding{TypeMeta: kind, ObjectMeta: meta, RoleRef: of, Subjects: subjects}
	}
	return &rbacv1.ClusterRoleBinding{TypeMeta: kind, ObjectMeta: meta, RoleRef: of, Subjects: subjects}
}
