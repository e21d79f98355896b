package kopf

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/handler"
)

type (
	// DriftFunc decides what becomes of the changes that other field managers have made to a
	// child of Ensure. It is called again whenever an attempt of the handler of Ensure is
	// repeated, so it must be idempotent.
	DriftFunc = handler.DriftFunc
	// Drift has the arguments of a DriftFunc: the parent (Body, Spec, Status, Patch, and the
	// others, as for Change), the child (Key, Child, Deleted), the handler that returns it
	// (EnsuredBy), and what has changed (Fields, Field). Its methods are those of
	// [handler.Drift].
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/handler.Drift
	Drift = handler.Drift
	// DriftedField is a field of a child that another field manager has changed or removed: its
	// Path ("spec.replicas"), the Manager that has changed it and Since when, if that is known, and
	// the values that are Wanted and Found. Its fields and methods (IsRemoved, String) are those of
	// [convergence.DriftedField].
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/convergence.DriftedField
	DriftedField = convergence.DriftedField
	// ChildKey identifies a child: its Group, Kind, Namespace, and Name. See
	// [convergence.ChildKey].
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/convergence.ChildKey
	ChildKey = convergence.ChildKey
	// Resolution is what becomes of a drift. It has no fields: Restore, Accept, and AcceptFields
	// return it, and the zero value restores everything. Its methods, such as And, which combines
	// two of them, are those of [convergence.Resolution].
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/convergence.Resolution
	Resolution = convergence.Resolution
	// DriftOption is an option of OnDrift.
	DriftOption = handler.DriftOption
	// DriftingOption is an option of OnDrift alone.
	DriftingOption = handler.DriftingOption
)

// OnDrift declares a function that decides what becomes of the changes that others make to the
// children of Ensure. Without one, all of them are restored.
//
//	kopf.OnDrift(kopf.Resource("shops"), func(ctx context.Context, c *kopf.Drift) (kopf.Resolution, error) {
//		return kopf.AcceptFields("spec.replicas"), nil
//	}, kopf.ID("scaled"))
//
// The function is called for one child at a time, before the operator restores it. It receives the
// fields that differ, their values, and the field managers that have changed them. A field that
// was removed has no manager, and neither has a child that was deleted: it is not known which
// client has done that. After a start, the function is called for what has happened meanwhile,
// except for deletions: such a child is created again without a call.
//
// A field that is accepted stays as it is, whichever client changes it, until the handler of Ensure
// wants another value of it. That is stored on the child, in the same write that restores the
// other fields. The deletion of a child cannot be accepted: do not return the child instead.
//
// The function is a part of the attempt of the handler of Ensure. If it returns an error, the
// attempt fails, and is retried by the options of Ensure; meanwhile the child is left as it is.
// The other children are applied.
//
// OnDrift is for the children of all handlers of Ensure for the object, unless with EnsuredBy. If
// several functions match, all are called, and a field is accepted if one of them accepts it.
func (r *Registry) OnDrift(parents Selector, fn DriftFunc, options ...DriftOption) {
	r.declared().Add(handler.ForDrift(parents, handler.Function{Drift: fn}, options...))
}

// OnDrift declares a function that decides what becomes of the changes that others make to the
// children of Ensure, in DefaultRegistry. See Registry.OnDrift.
func OnDrift(parents Selector, fn DriftFunc, options ...DriftOption) {
	DefaultRegistry.OnDrift(parents, fn, options...)
}

// EnsuredBy restricts a function of OnDrift to the children of the handlers of Ensure with these
// ids. An id that no handler of Ensure has is an error at the start.
func EnsuredBy(ids ...string) DriftingOption { return handler.EnsuredBy(ids...) }

// Restore makes the operator apply again what the handler of Ensure wants.
func Restore() Resolution { return convergence.Restore() }

// Accept leaves all fields of the drift to their field managers, until the handler of Ensure wants
// other values of them. For a deleted child, it is a permanent error.
func Accept() Resolution { return convergence.Accept() }

// AcceptFields leaves the fields with these paths to their field managers, and restores the others:
// "spec.replicas", as in DriftedField.Path. Paths that have not drifted have no effect, and a child
// that was deleted is created again.
func AcceptFields(paths ...string) Resolution { return convergence.AcceptFields(paths...) }

// DriftOf is a Drift of the children of a typed parent.
type DriftOf[P client.Object] struct {
	*Drift
	object P
}

// Bind sets the arguments, and decodes the parent. See ChangeOf.Bind.
func (c *DriftOf[P]) Bind(to *Drift) (err error) {
	c.Drift = to
	c.object, err = decode[P](to.Body().Raw())
	return err
}

// Object returns the parent as it is now. Changing it has no effect: use Update, or the Patch.
func (c *DriftOf[P]) Object() P { return c.object }

// Update changes the parent with a function. See ChangeOf.Update.
func (c *DriftOf[P]) Update(change func(P) error) { update(c.Patch(), change) }

// OnDrift is Registry.OnDrift for parents of the type. As long as the parent does not fit it, the
// children are not restored.
func (t Typed[T]) OnDrift(fn func(context.Context, *DriftOf[T]) (Resolution, error), options ...DriftOption) {
	function := handler.Function{Object: newOf[T]()}
	if fn != nil {
		function.Origin = fn
		function.Drift = func(ctx context.Context, c *Drift) (Resolution, error) {
			typed := &DriftOf[T]{}
			if err := typed.Bind(c); err != nil {
				return Resolution{}, err
			}
			return fn(ctx, typed)
		}
	}
	t.registry.declared().Add(handler.ForDrift(Selector{}, function, options...))
}
