package kopf

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

type (
	// ChildFunc is a handler of children. It can be called again after a crash, so it must be
	// idempotent.
	ChildFunc = handler.ChildFunc
	// ChildChange has the arguments of a ChildFunc: the parent (Body, Spec, Status, Patch,
	// and the others, as for Change), the child (Child, Old, New, Diff), what has happened to
	// it (Reason, Moved), and all children of the parent (Initial, Children). Its methods are
	// those of [handler.ChildChange].
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/handler.ChildChange
	ChildChange = handler.ChildChange
	// ChildOption is an option of OnChild.
	ChildOption = handler.ChildOption
	// FamilyOption is an option of OnChild alone.
	FamilyOption = handler.FamilyOption
)

// OnChild declares a handler that is called for a parent when one of its children is created,
// changed, or deleted. A child belongs to a parent by an owner reference, or by a label: see
// ChildLabel. The handler is the parent's: its filters and its Patch are about the parent.
//
//	kopf.OnChild(kopf.Resource("webs"), kopf.Resource("v1", "pods"), podChanged)
//
// Each child has its own calls, which succeed, fail, and are retried independently. Changes are
// merged as long as a call is pending or running, so the next call sees all of them: the
// difference is from the state of the last successful call. Nothing is written for a success.
// While calls fail, one record on the parent counts the attempts.
//
// After a start, the handler is called once for each existing parent, with all Children instead
// of one Child: see ChildChange.Initial. What has happened to the children meanwhile is not
// known, in particular which of them were deleted. Parents that are being deleted have no calls,
// unless with the option Deleted.
//
// The operator watches the children in its namespaces. It needs a name: Settings.Name.
func (r *Registry) OnChild(parents, children Selector, fn ChildFunc, options ...ChildOption) {
	r.declared().Add(handler.Child(parents, children, handler.Function{Child: fn}, options...))
}

// OnChild declares a handler of the children of objects in DefaultRegistry. See
// Registry.OnChild.
func OnChild(parents, children Selector, fn ChildFunc, options ...ChildOption) {
	DefaultRegistry.OnChild(parents, children, fn, options...)
}

// ChildLabel makes children belong to their parent by a label whose value is the uid of the
// parent, instead of by their owner references. It is for children whose owner references
// Kubernetes does not allow: in another namespace than their parent, or cluster-scoped while
// their parent is not; and for those that must survive their parent.
func ChildLabel(key string) FamilyOption { return handler.ChildLabel(key) }

// ChildChangeOf is a ChildChange of a typed parent.
type ChildChangeOf[P client.Object] struct {
	*ChildChange
	object P
}

// Bind sets the arguments, and decodes the parent. See ChangeOf.Bind.
func (c *ChildChangeOf[P]) Bind(to *ChildChange) (err error) {
	c.ChildChange = to
	c.object, err = decode[P](to.Body().Raw())
	return err
}

// Object returns the parent as it is now. Changing it has no effect: use Update, or the Patch.
func (c *ChildChangeOf[P]) Object() P { return c.object }

// Update changes the parent with a function. See ChangeOf.Update.
func (c *ChildChangeOf[P]) Update(change func(P) error) { update(c.Patch(), change) }

// OnChild is Registry.OnChild for parents of the type. Use OnChildOf if the children have a Go
// type, too.
func (t Typed[T]) OnChild(children Selector, fn func(context.Context, *ChildChangeOf[T]) error, options ...ChildOption) {
	function := handler.Function{Object: newOf[T]()}
	if fn != nil {
		function.Origin = fn
		function.Child = func(ctx context.Context, c *ChildChange) error {
			typed := &ChildChangeOf[T]{}
			if err := typed.Bind(c); err != nil {
				return err
			}
			return fn(ctx, typed)
		}
	}
	t.registry.declared().Add(handler.Child(Selector{}, children, function, options...))
}

// FamilyChange is a ChildChange of a typed parent and a typed child.
type FamilyChange[P, C client.Object] struct {
	ChildChangeOf[P]
	child C
}

// Bind sets the arguments, and decodes the parent and the children. See ChangeOf.Bind. A child
// that does not fit its type is an error of the call.
func (c *FamilyChange[P, C]) Bind(to *ChildChange) (err error) {
	if err := c.ChildChangeOf.Bind(to); err != nil {
		return err
	}
	if body := to.Child(); body != nil {
		c.child, err = decodeChild[C](body.Raw())
	}
	return err
}

// ChildObject returns the child in its latest version; for a deleted child, it is the last one.
// It is nil if the call is about all children: see ChildChange.Initial.
func (c *FamilyChange[P, C]) ChildObject() C { return c.child }

// OldChild returns the child as of the last call that has succeeded, decoded at every call. It
// is nil if this is the first call for the child in this process.
func (c *FamilyChange[P, C]) OldChild() (C, error) {
	old, exists := c.Old().Any().(map[string]any)
	if !exists {
		var none C
		return none, nil
	}
	return decodeChild[C](old)
}

// ChildObjects returns all children that the parent has now, in the order of
// ChildChange.Children. They are decoded at every call.
func (c *FamilyChange[P, C]) ChildObjects() ([]C, error) {
	var all []C
	for _, body := range c.Children() {
		child, err := decodeChild[C](body.Raw())
		if err != nil {
			return nil, err
		}
		all = append(all, child)
	}
	return all, nil
}

// decodeChild decodes a child. Its error is none of the parent's, so the call is retried.
func decodeChild[C client.Object](raw map[string]any) (C, error) {
	child := newOf[C]()
	if err := object.NewView(raw).Decode(child); err != nil {
		var none C
		return none, fmt.Errorf("the child does not fit its Go type: %w", err)
	}
	return child, nil
}

// OnChildOf is Registry.OnChild for parents and children of Go types.
//
//	kopf.OnChildOf(registry, func(ctx context.Context, c *kopf.FamilyChange[*v1.Web, *corev1.Pod]) error { … })
func OnChildOf[P, C client.Object](r *Registry, fn func(context.Context, *FamilyChange[P, C]) error, options ...ChildOption) {
	function := handler.Function{Object: newOf[P](), ChildObject: newOf[C]()}
	if fn != nil {
		function.Origin = fn
		function.Child = func(ctx context.Context, c *ChildChange) error {
			typed := &FamilyChange[P, C]{}
			if err := typed.Bind(c); err != nil {
				return err
			}
			return fn(ctx, typed)
		}
	}
	r.declared().Add(handler.Child(Selector{}, Selector{}, function, options...))
}
