package webhook

import (
	"slices"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// matches reports whether a webhook is for a request. Configurations of webhooks are never
// reviewed, because no client could repair them.
func (a *Admission) matches(hook registrationv1.ValidatingWebhook, r Review) bool {
	if r.Resource.Group == registrationv1.GroupName && strings.HasSuffix(r.Resource.Resource, "webhookconfigurations") {
		return false
	}
	return slices.ContainsFunc(hook.Rules, func(rule registrationv1.RuleWithOperations) bool { return isFor(rule, r) }) &&
		a.matchesNamespace(hook.NamespaceSelector, r) && matchesObject(hook.ObjectSelector, r)
}

// isFor reports whether a rule is for a request.
func isFor(rule registrationv1.RuleWithOperations, r Review) bool {
	of := r.Resource
	scope := registrationv1.ClusterScope
	if of.Namespaced {
		scope = registrationv1.NamespacedScope
	}
	return (slices.Contains(rule.Operations, registrationv1.OperationAll) || slices.Contains(rule.Operations, registrationv1.OperationType(r.Operation))) &&
		has(rule.APIGroups, of.Group) && has(rule.APIVersions, of.Version) && hasResource(rule.Resources, of.Resource, r.Subresource) &&
		(rule.Scope == nil || *rule.Scope == registrationv1.AllScopes || *rule.Scope == scope)
}

func has(names []string, name string) bool {
	return slices.Contains(names, "*") || slices.Contains(names, name)
}

// hasResource reports whether a resource or subresource is named: "pods", "pods/status",
// "pods/*", "*/status", "*", or "*/*".
func hasResource(names []string, plural, subresource string) bool {
	if subresource == "" {
		return has(names, plural) || slices.Contains(names, "*/*") || slices.Contains(names, plural+"/*")
	}
	for _, first := range []string{plural, "*"} {
		if slices.Contains(names, first+"/"+subresource) || slices.Contains(names, first+"/*") {
			return true
		}
	}
	return false
}

// matchesNamespace compares the labels of the object's namespace. A namespace belongs to
// itself, and other cluster-scoped objects always match.
func (a *Admission) matchesNamespace(selector *metav1.LabelSelector, r Review) bool {
	if r.Resource.Group == "" && r.Resource.Resource == "namespaces" {
		return matchesObject(selector, r)
	}
	if r.Key.Namespace == "" {
		return true
	}
	namespace := a.store.Get(schema.GroupResource{Resource: "namespaces"}, types.NamespacedName{Name: r.Key.Namespace})
	return selects(selector, namespace)
}

// matchesObject compares the labels of the new or the old object.
func matchesObject(selector *metav1.LabelSelector, r Review) bool {
	return selects(selector, r.Object) || selects(selector, r.Old)
}

func selects(selector *metav1.LabelSelector, object *unstructured.Unstructured) bool {
	if object == nil {
		return false
	}
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(object.GetLabels()))
}
