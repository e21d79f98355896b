package webhook

import (
	"errors"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
)

// NewHook returns what the API server must know about a handler for one resource.
func NewHook(d *handler.Declaration, resource selector.Resource) configurations.Hook {
	hook := configurations.Hook{
		ID: d.ID, Validating: d.Kind == handler.OnValidate, Resource: resource,
		Subresource: d.Webhook.Subresource, Persistent: d.Webhook.Persistent,
		SideEffects: d.Webhook.SideEffects, IgnoreFailures: d.Webhook.IgnoreFailures,
		LabelSelector: d.LabelSelector(),
	}
	// The operations for which the API server sends reviews; none means all. A mutating handler that
	// names none gets no deletions, which have nothing to change: a stopped operator must not block them.
	operations := d.Webhook.Operations
	if len(operations) == 0 && d.Kind == handler.OnMutate {
		operations = []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Connect}
	}
	for _, operation := range operations {
		hook.Operations = append(hook.Operations, string(operation))
	}
	return hook
}

// NewHooks returns the hooks of all admission handlers for the resources of a cluster,
// in the order of the declarations. An ambiguous selector selects all resources that it
// matches. The problems name the handlers that cannot be called because their resource
// does not exist: *selector.NotFoundError.
//
// A handler that is declared several times has several hooks with one ID.
func NewHooks(handlers registry.Handlers, resources []selector.Resource) (hooks []configurations.Hook, problems []error) {
	for _, d := range handlers.Admission() {
		found, err := d.Selector.Resolve(resources)
		var ambiguous *selector.AmbiguousError
		switch {
		case errors.As(err, &ambiguous):
			// A check that is not made is worse than one that is made too often.
			found = ambiguous.Found
		case err != nil:
			problems = append(problems, err)
		}
		for _, resource := range found {
			hooks = append(hooks, NewHook(d, resource))
		}
	}
	return hooks, problems
}
