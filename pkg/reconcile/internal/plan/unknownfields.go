package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/knownfields"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// HasFields reports whether a handler is for a field of the objects, filters by one, or looks at one.
func HasFields(declared registry.Handlers) bool { return slices.ContainsFunc(declared, isForField) }

func isForField(d *handler.Declaration) bool {
	return len(d.Fields()) > 0 && d.Webhook.Subresource == ""
}

// UnknownFields returns an error for each handler of a field that the objects of a resource do not have. The definition
// is nil if it cannot be read, or if there is none, as for the resources of Kubernetes itself. Their Go types are
// in the scheme; they can be older than the API server, so only a similar field shows a mistake.
func UnknownFields(declared registry.Handlers, of selector.Resource, definition map[string]any, scheme *runtime.Scheme) []error {
	known := knownfields.OfDefinition(definition, of.Version)
	needsGuess := known == nil
	if definition == nil && scheme != nil {
		if typed, err := scheme.New(of.GVK()); err == nil {
			known = knownfields.OfType(typed)
		}
	}
	if known == nil {
		return nil
	}
	var problems []error
	for _, d := range declared {
		if !isForField(d) {
			continue
		}
		for _, field := range d.Fields() {
			missing := knownfields.Check(known, field)
			if missing == nil || isUsualPart(d, field) || needsGuess && missing.Nearest == nil {
				continue
			}
			problem := fmt.Errorf("%s: %s: the objects of %s have no field %q", d.DeclaredAt, handler.Describe(d), of, missing.Path)
			if missing.Nearest != nil {
				problem = fmt.Errorf("%w: did you mean %q?", problem, missing.Nearest)
			}
			problems = append(problems, problem)
		}
	}
	return problems
}

// isUsualPart reports whether a daemon looks at the whole spec, status, or data of its object. It can look at all of them,
// so that it knows the object of any resource.
func isUsualPart(d *handler.Declaration, field object.Path) bool {
	looksAt := func(other object.Path) bool { return slices.Equal(other, field) }
	return len(field) == 1 && slices.Contains([]string{"spec", "status", "data"}, field[0]) && slices.ContainsFunc(d.WakeOn, looksAt)
}
