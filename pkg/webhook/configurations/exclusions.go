package configurations

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// exclude keeps the operator from being called for namespaces that it does not serve,
// and for objects that it needs to be able to answer: a deadlock that nothing inside of
// the cluster could resolve.
func (o Options) exclude(webhook *admissionregistrationv1.ValidatingWebhook) {
	switch {
	case len(o.Namespaces) > 0:
		webhook.NamespaceSelector = namespaceSelector(metav1.LabelSelectorOpIn, o.Namespaces...)
	case o.OwnNamespace != "":
		webhook.NamespaceSelector = namespaceSelector(metav1.LabelSelectorOpNotIn, o.OwnNamespace)
	}
	if o.Lease.Name != "" && o.includesNamespace(o.Lease.Namespace) && slices.ContainsFunc(webhook.Rules, matchesLeases) {
		webhook.MatchConditions = []admissionregistrationv1.MatchCondition{o.leaseExclusion()}
	}
}

// includesNamespace reports whether the webhooks are called for objects of the namespace.
func (o Options) includesNamespace(namespace string) bool {
	if len(o.Namespaces) > 0 {
		return slices.Contains(o.Namespaces, namespace)
	}
	return namespace != o.OwnNamespace
}

func namespaceSelector(operator metav1.LabelSelectorOperator, names ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: operator, Values: names},
	}}
}

func matchesLeases(rule admissionregistrationv1.RuleWithOperations) bool {
	return slices.Contains(rule.APIGroups, coordinationv1.GroupName) && slices.Contains(rule.Resources, "leases")
}

// leaseExclusion returns a condition that the lease of the operator does not match.
func (o Options) leaseExclusion() admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{
		Name: "not-the-lease-of-the-operator",
		Expression: fmt.Sprintf("!(request.resource.group == %q && request.resource.resource == 'leases' && request.namespace == %q && request.name == %q)",
			coordinationv1.GroupName, o.Lease.Namespace, o.Lease.Name),
	}
}
