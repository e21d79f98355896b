package configurations

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
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
	webhook := admissionregistrationv1.ValidatingWebhook{
		Name:                    webhookName(g.ID, nameSuffix(options.Name)),
		ClientConfig:            handlerClientConfig(config, g.ID),
		Rules:                   g.rules,
		FailurePolicy:           new(admissionregistrationv1.Fail),
		MatchPolicy:             new(admissionregistrationv1.Equivalent),
		ObjectSelector:          g.LabelSelector.DeepCopy(),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(options.timeoutSeconds()),
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

// handlerClientConfig returns how the API servers call one handler.
func handlerClientConfig(config admissionregistrationv1.WebhookClientConfig, id string) admissionregistrationv1.WebhookClientConfig {
	located := *config.DeepCopy()
	if located.URL != nil {
		located.URL = new(joinPath(*located.URL, urlPath(id)))
	}
	if located.Service != nil {
		located.Service.Path = new(joinPath(ptr.Deref(located.Service.Path, ""), servicePath(id)))
	}
	return located
}

func joinPath(path, id string) string { return strings.TrimRight(path, "/") + "/" + id }
