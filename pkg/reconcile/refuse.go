package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// split finds out whose part of a refused write is to blame. The server is asked
// about the bookkeeping alone, and then with one more handler's part each time;
// it stores nothing of that, so that what is left over is written with its
// records at once. A part that is refused is the failure of its handler.
func (p *pass) split(ctx context.Context, in *intent, refusal error) error {
	suspects := p.memory.unsent
	p.memory.unsent = nil
	if err := p.probe(ctx, in); err != nil || len(suspects) == 0 {
		p.memory.unsent = suspects
		if err != nil && !refused(err) {
			return err
		}
		return fmt.Errorf("the API server refuses the operator's own bookkeeping: %w", refusal)
	}
	for i, part := range suspects {
		p.memory.unsent = append(p.memory.unsent, part)
		err := p.probe(ctx, in)
		switch {
		case refused(err):
			p.memory.unsent = p.memory.unsent[:len(p.memory.unsent)-1]
			p.blame(in, part, err)
		case err != nil:
			p.memory.unsent = append(p.memory.unsent, suspects[i+1:]...)
			return err
		}
	}
	if len(p.memory.unsent) == len(suspects) {
		p.blameLargest(in, refusal)
	}
	return nil
}

// probe asks the server whether it would take the write.
func (p *pass) probe(ctx context.Context, in *intent) error {
	main, status := p.wanted(in)
	book, err := p.bookkeeping(ctx, in, p.body, main)
	if err != nil {
		return err
	}
	if p.Status {
		book, _ = patch.SplitStatus(book)
	}
	if err := p.ask(ctx, "status", status); err != nil {
		return err
	}
	return p.ask(ctx, "", patch.Minimal(p.body.Raw(), main, book))
}

// ask sends one patch that is not to be stored.
func (p *pass) ask(ctx context.Context, subresource string, merge map[string]any) error {
	if len(merge) == 0 {
		return nil
	}
	text, err := p.bound(merge)
	if err != nil {
		return err
	}
	err = p.api.DryRun(ctx, p.key.NamespacedName, subresource, text)
	p.Metrics.Write(p.key.Resource, metrics.Check, answerOf(err))
	return err
}

// blameLargest is for refusals that come from behind the API server, such as
// etcd's of a too large object: then it is the size that matters.
func (p *pass) blameLargest(in *intent, refusal error) {
	largest, size := 0, -1
	for i, part := range p.memory.unsent {
		merge, _ := part.Patch.Resolve(p.body.Raw())
		text, _ := json.Marshal([]any{merge, part.Result})
		if len(text) > size {
			largest, size = i, len(text)
		}
	}
	part := p.memory.unsent[largest]
	p.memory.unsent = slices.Delete(p.memory.unsent, largest, largest+1)
	p.blame(in, part, refusal)
}

// blame makes a failure of the handler whose result or patch cannot be written.
// Nothing is run again because of it.
func (p *pass) blame(in *intent, part execution.Edit, err error) {
	if part.BestEffort {
		p.log.V(1).Info("The object has no room for a condition.", "problem", err.Error())
		return
	}
	id := part.ID
	if c := in.cycle; c != nil && c.progress.Has(id) {
		c.progress.Fail(id, err)
		c.unwritten = slices.DeleteFunc(c.unwritten, func(unwritten string) bool { return unwritten == id })
	}
	p.log.Error(err, "What the handler wants to be written to the object cannot be; the handler has failed.", "handler", id)
	p.post(p.body, warning, "WriteRejected", fmt.Sprintf("Handler %s failed: what it wants to be written is refused: %s", id, err))
}

// warnPruned tells, once, which fields the server has left out of what was
// written: the resource's schema does not know them.
func (p *pass) warnPruned(merge map[string]any) {
	if !prunable(merge) {
		return // to look would be to decode the whole answer
	}
	fields := missing(merge, p.body.Raw(), nil)
	if len(fields) == 0 {
		return
	}
	list := strings.Join(fields, ", ")
	if _, said := p.said.LoadOrStore(p.served.name+" "+list, true); said {
		return
	}
	p.log.Info("The API server has left fields out of what was written: the schema of the resource does not know them. "+
		"Add them to the CustomResourceDefinition, or x-kubernetes-preserve-unknown-fields; built-in resources keep no results of handlers.", "fields", list)
	p.post(p.body, warning, "PrunedFields", fmt.Sprintf("The schema of %s does not know these fields, they were not stored: %s", p.served.name, list))
}

// prunable tells whether a schema can lack any of the fields: it cannot lack the
// metadata that every object has.
func prunable(merge map[string]any) bool {
	for key, value := range merge {
		metadata, ok := value.(map[string]any)
		if key != "metadata" || !ok {
			return true
		}
		for field := range metadata {
			if field != "annotations" && field != "finalizers" && field != "labels" {
				return true
			}
		}
	}
	return false
}

// missing are the fields of a merge patch that the object does not have after it.
func missing(merge map[string]any, body any, above object.Path) []string {
	var fields []string
	for key, value := range merge {
		path := append(slices.Clone(above), key)
		present, exists := object.Lookup(body, object.Path{key})
		inner, mapping := value.(map[string]any)
		switch {
		case mapping && (exists || len(above) == 0): // "status" alone says too little
			fields = append(fields, missing(inner, present, path)...)
		case !exists && !empty(value):
			fields = append(fields, path.String())
		}
	}
	slices.Sort(fields)
	return fields
}

// empty tells whether the lack of the value means the same as the value: it only
// removes fields, or is a list or a mapping with nothing in it, which the API
// server drops of its own accord.
func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, inner := range value {
			if !empty(inner) {
				return false
			}
		}
		return true
	case []any:
		return len(value) == 0
	}
	return false
}
