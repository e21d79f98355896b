package webhook

import (
	"github.com/kopf-go/kopf/pkg/kopf/handler"
	"github.com/kopf-go/kopf/pkg/kopf/registry"
	"github.com/kopf-go/kopf/pkg/kopf/selector"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
)

// HookOf is a handler as the API server is to know it.
func HookOf(d *handler.Declaration, resource selector.Resource) configurations.Hook {
	hook := configurations.Hook{
		ID: d.ID, Validating: d.Kind == handler.OnValidate, Resource: resource,
		Subresource: d.Reviews.Subresource, Persistent: d.Reviews.Persistent,
		SideEffects: d.Reviews.SideEffects, IgnoreFailures: d.Reviews.IgnoreFailures,
		LabelSelector: d.LabelSelector(),
	}
	for _, operation := range d.Reviews.Operations {
		hook.Operations = append(hook.Operations, string(operation))
	}
	return hook
}

// HooksOf are the admission handlers for the resources of a cluster, in the order of
// their declarations. The errors tell which handlers are called for nothing, because
// what they are for is not there, or is ambiguous: *selector.NotFoundError and
// *selector.AmbiguousError.
//
// A handler that is declared several times has several hooks of one ID.
func HooksOf(handlers registry.Handlers, resources []selector.Resource) (hooks []configurations.Hook, problems []error) {
	for _, d := range handlers.Admission() {
		found, err := d.Selector.Resolve(resources)
		if err != nil {
			problems = append(problems, err)
		}
		for _, resource := range found {
			hooks = append(hooks, HookOf(d, resource))
		}
	}
	return hooks, problems
}
