package configurations

import (
	"cmp"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kopf-go/kopf/pkg/settings"
)

// Options say whose configurations they are.
type Options struct {
	// Name is that of both configurations, and the end of the names of the webhooks.
	// Empty: the configurations are not managed.
	Name string
	// Namespaces are those that the operator serves. Empty: all.
	Namespaces []string
	// OwnNamespace is where the operator runs, if its own things are not to be
	// admitted by itself. Empty: no namespace is left out.
	OwnNamespace string
	// Lease is what the replicas elect their leader with; it is never admitted by
	// themselves. Empty: there is none.
	Lease types.NamespacedName
	// Timeout is how long an API server waits for an answer, in whole seconds.
	// Default: settings.DefaultAdmissionTimeout.
	Timeout time.Duration
	// ManifestFile is where the manifest is written that a person is to apply if the
	// configurations are not managed. Empty: it is logged.
	ManifestFile string
}

// timeout is in seconds.
func (o Options) timeout() int32 {
	return int32(cmp.Or(o.Timeout, settings.DefaultAdmissionTimeout) / time.Second) //nolint:gosec // 30 at most
}

// Build makes the webhooks of the hooks, for both configurations, in their order. To
// the path of the client configuration they add the ids of the handlers.
//
// The shape is that of Kopf, but for what Kubernetes does not accept: names have no
// capital letters, paths of services are made plain. A namespace and a lease are
// left out only if the options have them.
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

// Persistent are the hooks that stay after the operator.
func Persistent(hooks []Hook) []Hook {
	return slices.DeleteFunc(slices.Clone(hooks), func(h Hook) bool { return !h.Persistent })
}

func (g *group) webhook(config admissionregistrationv1.WebhookClientConfig, options Options) admissionregistrationv1.ValidatingWebhook {
	webhook := admissionregistrationv1.ValidatingWebhook{
		Name:                    webhookName(g.ID, nameSuffix(options.Name)),
		ClientConfig:            handlerClientConfig(config, g.ID),
		Rules:                   g.rules,
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		ObjectSelector:          g.LabelSelector.DeepCopy(),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(options.timeout()),
		AdmissionReviewVersions: []string{"v1", "v1beta1"},
	}
	if g.IgnoreFailures {
		webhook.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	}
	if g.SideEffects {
		webhook.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun)
	}
	options.exclude(&webhook)
	return webhook
}

// handlerClientConfig is where one handler is.
func handlerClientConfig(config admissionregistrationv1.WebhookClientConfig, id string) admissionregistrationv1.WebhookClientConfig {
	located := *config.DeepCopy()
	if located.URL != nil {
		located.URL = ptr.To(joinPath(*located.URL, urlPath(id)))
	}
	if located.Service != nil {
		located.Service.Path = ptr.To(joinPath(ptr.Deref(located.Service.Path, ""), servicePath(id)))
	}
	return located
}

func joinPath(path, id string) string { return strings.TrimRight(path, "/") + "/" + id }
