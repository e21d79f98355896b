package configurations

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kopf-go/kopf/pkg/settings"
)

// Build returns the webhooks of the hooks, for both configurations, in the order of the
// hooks. Each webhook appends the id of its handler to the path of the client
// configuration.
//
// The webhooks are those of Kopf, except where Kubernetes rejects them: names have no
// capital letters, and paths of services are sanitized.
func Build(hooks []Hook, config admissionregistrationv1.WebhookClientConfig, options Options) (validating, mutating []admissionregistrationv1.ValidatingWebhook) {
	taken := map[bool]map[string]bool{true: {}, false: {}}
	for _, g := range groupHooks(hooks) {
		webhook := g.webhook(config, options)
		webhook.Name = uniqueName(webhook.Name, taken[g.Validating])
		if g.Validating {
			validating = append(validating, webhook)
		} else {
			mutating = append(mutating, webhook)
		}
	}
	return validating, mutating
}

// Persistent returns the hooks that stay when the operator exits.
func Persistent(hooks []Hook) []Hook {
	return slices.DeleteFunc(slices.Clone(hooks), func(h Hook) bool { return !h.Persistent })
}

func (g *group) webhook(config admissionregistrationv1.WebhookClientConfig, options Options) admissionregistrationv1.ValidatingWebhook {
	located := *config.DeepCopy() // at the path of the handler
	if located.URL != nil {
		located.URL = new(joinPath(*located.URL, urlPath(g.ID)))
	}
	if located.Service != nil {
		located.Service.Path = new(joinPath(ptr.Deref(located.Service.Path, ""), servicePath(g.ID)))
	}
	timeout := int32(cmp.Or(options.Timeout, settings.DefaultAdmissionTimeout) / time.Second) //nolint:gosec // 30 at most
	webhook := admissionregistrationv1.ValidatingWebhook{
		Name:                    webhookName(g.ID, nameSuffix(options.Name)),
		ClientConfig:            located,
		Rules:                   g.rules,
		FailurePolicy:           new(admissionregistrationv1.Fail),
		MatchPolicy:             new(admissionregistrationv1.Equivalent),
		ObjectSelector:          g.LabelSelector.DeepCopy(),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          &timeout,
		AdmissionReviewVersions: []string{"v1", "v1beta1"},
	}
	if g.IgnoreFailures {
		webhook.FailurePolicy = new(admissionregistrationv1.Ignore)
	}
	if g.SideEffects {
		webhook.SideEffects = new(admissionregistrationv1.SideEffectClassNoneOnDryRun)
	}
	options.exclude(&webhook)
	return webhook
}

func joinPath(path, id string) string { return strings.TrimRight(path, "/") + "/" + id }

// exclude keeps the operator from being called for namespaces that it does not serve,
// and for objects that it needs to be able to answer: a deadlock that nothing inside of
// the cluster could resolve.
func (o Options) exclude(webhook *admissionregistrationv1.ValidatingWebhook) {
	isLeaseServed := o.Lease.Namespace != o.OwnNamespace
	switch {
	case len(o.Namespaces) > 0:
		webhook.NamespaceSelector = namespaceSelector(metav1.LabelSelectorOpIn, o.Namespaces...)
		isLeaseServed = slices.Contains(o.Namespaces, o.Lease.Namespace)
	case o.OwnNamespace != "":
		webhook.NamespaceSelector = namespaceSelector(metav1.LabelSelectorOpNotIn, o.OwnNamespace)
	}
	matchesLeases := func(rule admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(rule.APIGroups, coordinationv1.GroupName) && slices.Contains(rule.Resources, "leases")
	}
	if o.Lease.Name != "" && isLeaseServed && slices.ContainsFunc(webhook.Rules, matchesLeases) {
		webhook.MatchConditions = []admissionregistrationv1.MatchCondition{{
			Name: "not-the-lease-of-the-operator",
			Expression: fmt.Sprintf("!(request.resource.group == %q && request.resource.resource == 'leases' && request.namespace == %q && request.name == %q)",
				coordinationv1.GroupName, o.Lease.Namespace, o.Lease.Name),
		}}
	}
}

func namespaceSelector(operator metav1.LabelSelectorOperator, names ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: operator, Values: names},
	}}
}
