package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/kopf/object"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// split finds out whose part of a refused write is to blame, by writing the
// handlers' parts one by one. Those that are refused again are the failures of
// their handlers; the bookkeeping can then go alone.
func (p *pass) split(ctx context.Context, in *intent, refusal error) error {
	parts := p.memory.unsent
	if len(parts) == 0 {
		return fmt.Errorf("the API server refuses the operator's own bookkeeping: %w", refusal)
	}
	for i, part := range parts {
		p.memory.unsent = []execution.Contribution{part}
		err := p.try(ctx, &intent{foreign: in.foreign})
		switch {
		case refused(err):
			p.blame(in, part.ID, err)
		case err != nil:
			p.memory.unsent = slices.Clone(parts[i:])
			return err
		}
	}
	p.memory.unsent = nil
	return nil
}

// blame makes a failure of the handler whose result or patch cannot be written.
// Nothing is run again because of it.
func (p *pass) blame(in *intent, id string, err error) {
	if in.cycle != nil && in.cycle.progress.Known(id) {
		in.cycle.progress.Fail(id, err)
	}
	p.log.Error(err, "What the handler wants to be written to the object cannot be; the handler has failed.", "handler", id)
	p.post(p.body, warning, "Refused", fmt.Sprintf("Handler %s failed: what it wants to be written is refused: %s", id, err))
}

// warnPruned tells, once, which fields the server has left out of what was
// written: the resource's schema does not know them.
func (p *pass) warnPruned(merge map[string]any) {
	fields := missing(merge, p.body.Raw(), nil)
	if len(fields) == 0 {
		return
	}
	list := strings.Join(fields, ", ")
	if _, said := p.said.LoadOrStore(p.served.name+" "+list, true); said {
		return
	}
	p.log.Info("The API server has left fields out of what was written: the schema of the resource does not know them. "+
		"Add them to the CustomResourceDefinition, or x-kubernetes-preserve-unknown-fields.", "fields", list)
	p.post(p.body, warning, "PrunedFields", fmt.Sprintf("The schema of %s does not know these fields, they were not stored: %s", p.served.name, list))
}

// missing are the fields of a merge patch that the object does not have after it.
func missing(merge map[string]any, body any, above object.Path) []string {
	var fields []string
	for key, value := range merge {
		path := append(slices.Clone(above), key)
		present, exists := object.Lookup(body, object.Path{key})
		inner, mapping := value.(map[string]any)
		switch {
		case mapping && exists:
			fields = append(fields, missing(inner, present, path)...)
		case !exists && !empty(value):
			fields = append(fields, path.String())
		}
	}
	slices.Sort(fields)
	return fields
}

// empty tells whether the lack of the value means the same as the value: the API
// server drops empty lists and mappings of its own accord.
func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}
