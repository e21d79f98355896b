package configurations

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// OptionsFor are those of an operator. The pod's namespace is empty for an operator
// outside of a cluster; the lease is empty for an operator that runs once.
func OptionsFor(s settings.Settings, podNamespace string, lease types.NamespacedName) Options {
	options := Options{
		Name: s.Admission.Managed, OwnNamespace: podNamespace, Lease: lease,
		Timeout: s.Admission.Timeout, ManifestFile: s.Admission.ManifestFile,
	}
	if s.Admission.IncludeOwnNamespace || slices.Contains(s.Scope.Namespaces, podNamespace) {
		options.OwnNamespace = ""
	}
	if scope := selector.Namespaces(s.Scope.Namespaces); len(scope.Patterns()) == 0 {
		options.Namespaces = scope.Names() // Kubernetes has no patterns
	}
	return options
}

// exclude keeps an operator from being asked about what is none of its business, and
// about what it needs for being able to answer: nobody could repair that from inside
// of the cluster.
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

// includesNamespace tells whether objects of the namespace come to the webhooks.
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

func (o Options) leaseExclusion() admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{
		Name: "not-the-lease-of-the-operator",
		Expression: fmt.Sprintf("!(request.resource.group == %q && request.resource.resource == 'leases' && request.namespace == %q && request.name == %q)",
			coordinationv1.GroupName, o.Lease.Namespace, o.Lease.Name),
	}
}
