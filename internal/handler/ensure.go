package handler

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Converger makes the children of an object what they should be. The engine implements it.
type Converger interface {
	// Converge applies the children that a call of a handler wants, and deletes the others that
	// the handler has applied earlier.
	Converge(ctx context.Context, d *Declaration, call *Call, wanted []client.Object) error
	// Release deletes the children of a handler that the garbage collector does not reach.
	Release(ctx context.Context, d *Declaration) error
}

var errNoConverger = errors.New("the children cannot be applied, because the handler was not called by an operator")

// Ensure declares a function whose result is the children of an object, as a []client.Object. It is one handler with
// several declarations: for everything that happens to the object, for its deletion, if the
// garbage collector of Kubernetes does not reach all children, and for what happens to the
// children.
func Ensure(sel selector.Selector, fn Function, options ...ChildOption) ([]*Declaration, error) {
	var all []*Declaration
	for _, kind := range []Kind{OnCreate, OnUpdate, OnResume} {
		d, err := declare(kind, sel, fn, settingsOf(options), converging)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return append(all, releasing(all[0]), restoring(all[0])), nil
}

// converging makes the declaration one of a handler that returns children.
func converging(d *Declaration) {
	d.Ensures = &convergence.Options{}
	children := d.call
	if children == nil {
		return
	}
	d.call = func(ctx context.Context, c *Call) (any, error) {
		result, err := children(ctx, c)
		if err != nil {
			return nil, err
		}
		if c.Context.Converger == nil {
			return nil, errNoConverger
		}
		wanted, _ := result.([]client.Object)
		return nil, c.Context.Converger.Converge(ctx, d, c, wanted)
	}
}

// releasing returns the declaration of the same handler for deletions. It holds only objects
// with children that the garbage collector does not reach, whatever the handler's filters say
// by now.
func releasing(d *Declaration) *Declaration {
	r := *d
	r.Kind = OnDelete
	r.OnMisfit = CallUntyped
	r.decoding = nil
	r.types = nil
	r.Labels = nil
	r.Annotations = nil
	r.Predicates = []Predicate{{Accepts: hasUnreachableChildren}}
	r.call = func(ctx context.Context, c *Call) (any, error) {
		if c.Context.Converger == nil {
			return nil, errNoConverger
		}
		return nil, c.Context.Converger.Release(ctx, d)
	}
	return &r
}

// restoring returns the declaration of the same handler for what others do to the children. It
// has its own record, because it belongs to no cycle of the parent, and no result: the status has
// that of the last cycle. For the same reason, it calls no sub-handlers.
func restoring(d *Declaration) *Declaration {
	r := *d
	r.Kind = OnRestore
	r.ID = d.ID + "/restore"
	r.parent = d
	r.call = func(ctx context.Context, c *Call) (any, error) {
		c.change.subhandlers = noSubhandlers{}
		_, err := d.call(ctx, c)
		c.SetResult(nil)
		return nil, err
	}
	return &r
}

// noSubhandlers ignores sub-handlers.
type noSubhandlers struct{}

func (noSubhandlers) Register(*Declaration, error)  {}
func (noSubhandlers) Execute(context.Context) error { return nil }

// hasUnreachableChildren reports whether the garbage collector does not delete all children
// with the object.
func hasUnreachableChildren(c *Call) bool {
	places := convergence.ReadPlaces(c.Body())
	return !places.AreReachable(c.Body().Namespace())
}
