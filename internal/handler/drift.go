package handler

import (
	"context"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Drift declares a handler of what others change in the children of objects. Its result is a
// convergence.Resolution.
func Drift(sel selector.Selector, fn Function, options ...ChildOption) (*Declaration, error) {
	return declare(OnDrift, sel, fn, settingsOf(options))
}

// DriftCall describes one call of a handler of drift.
type DriftCall struct {
	convergence.Drift
	// EnsuredBy is the id of the handler that returns the child.
	EnsuredBy string
}

// NewDriftCall returns a call of a handler of drift. It is a part of a call of the handler that
// returns the children, whose patch and attempt it has.
func NewDriftCall(d *Declaration, s CallContext, children *Call, of DriftCall) *Call {
	s.Patch = children.Context.Patch
	c := NewCall(d, s, children.Attempt)
	c.Drift = &of
	return c
}

// AboutChild returns the handler for a call about one child, which is a part of its id: the
// resource, and the name with the namespace unless it is the parent's.
func AboutChild(d *Declaration, r selector.Resource, child convergence.ChildKey, parentNamespace string) *Declaration {
	call := *d
	parts := []string{d.ID, r.Plural, child.Name}
	if child.Namespace != parentNamespace {
		parts = []string{d.ID, r.Plural, child.Namespace, child.Name}
	}
	call.ID = strings.Join(parts, "/")
	call.parent = d
	return &call
}

// Resolve calls a handler of drift, as Call does, and returns what it has decided. A resolution
// that is impossible for the drift is a permanent error.
func (d *Declaration) Resolve(ctx context.Context, c *Call) (convergence.Resolution, error) {
	result, err := d.Call(ctx, c)
	r, _ := result.(convergence.Resolution)
	if err != nil {
		return r, err
	}
	if wrong := r.Check(c.Drift.Drift); wrong != nil {
		return r, Permanent(wrong)
	}
	return r, nil
}
