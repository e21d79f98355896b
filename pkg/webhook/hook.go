package webhook

import (
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
)

// NewHook is a handler as the API server is to know it.
func NewHook(d *handler.Declaration, resource selector.Resource) configurations.Hook {
	hook := configurations.Hook{
		ID: d.ID, Validating: d.Kind == handler.OnValidate, Resource: resource,
		Subresource: d.Webhook.Subresource, Persistent: d.Webhook.Persistent,
		SideEffects: d.Webhook.SideEffects, IgnoreFailures: d.Webhook.IgnoreFailures,
		LabelSelector: d.LabelSelector(),
	}
	for _, operation := range admissionOperations(d) {
		hook.Operations = append(hook.Operations, string(operation))
	}
	return hook
}

// admissionOperations are those that the API server is to ask about. A mutation that names none
// is not asked about deletions, for there is nothing to change: and so an operator that
// is gone does not hold them up.
func admissionOperations(d *handler.Declaration) []admissionv1.Operation {
	if len(d.Webhook.Operations) == 0 && d.Kind == handler.OnMutate {
		return []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Connect}
	}
	return d.Webhook.Operations
}

// NewHooks are the admission handlers for the resources of a cluster, in the order of
// their declarations. The errors tell which handlers are called for nothing, because
// what they are for is not there, or is ambiguous: *selector.NotFoundError and
// *selector.AmbiguousError.
//
// A handler that is declared several times has several hooks of one ID.
func NewHooks(handlers registry.Handlers, resources []selector.Resource) (hooks []configurations.Hook, problems []error) {
	for _, d := range handlers.Admission() {
		found, err := d.Selector.Resolve(resources)
		if err != nil {
			problems = append(problems, err)
		}
		for _, resource := range found {
			hooks = append(hooks, NewHook(d, resource))
		}
	}
	return hooks, problems
}
