package reconcile

import (
	"slices"

	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// attempt is a write of what handlers want, of which it is not known whether it
// was committed. If it was, it must not be repeated: a transformation may do harm
// on its own result.
type attempt struct {
	merge   map[string]any
	status  bool           // to the status as a subresource
	version string         // of the object that it is bound to
	parts   []*patch.Patch // of the contributions that are in it
}

// attempt is about to send what the handlers want to be written.
func (p *pass) attempt(merge map[string]any, subresource string) attempt {
	a := attempt{merge: merge, status: subresource != "", version: p.body.ResourceVersion()}
	for _, c := range p.memory.unsent {
		a.parts = append(a.parts, c.Patch)
	}
	return a
}

// settled are the contributions without what the attempt has written. Event
// handlers may have added some since.
func (a attempt) settled(unsent []execution.Edit) []execution.Edit {
	written := func(c execution.Edit) bool { return slices.Contains(a.parts, c.Patch) }
	if !a.status {
		return slices.DeleteFunc(unsent, written)
	}
	for i := range unsent {
		unsent[i].StatusWritten = unsent[i].StatusWritten || written(unsent[i])
	}
	return unsent
}
