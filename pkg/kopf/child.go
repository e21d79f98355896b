package kopf

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// ChildChange has the arguments of a handler of children. Body and all that comes from it are the
// parent's, whose handler it is, and so is the Patch. Old, New, Diff, and Reason are about the
// child:
//
//   - Reason is what has happened to the child: ReasonCreate, ReasonUpdate, or ReasonDelete. A child
//     counts as created if it is new for the parent, and as deleted if it is not a child of
//     the parent anymore; see Moved. ReasonResume means that the call is about all children: see
//     Initial.
//   - Old is the child as of the last call that has succeeded, or an absent value if this is
//     the first one in this process. It is the entire object, with its status, and without the
//     metadata that changes with every write.
//   - New is the child as it is now, or an absent value if it is deleted or if the call is
//     about all children.
//
// Use it only while the handler runs, and only in the handler's goroutine; the Patch can be shared.
// The handler is called again after an error, and after a crash, so it must be idempotent.
type ChildChange struct {
	reading
	writing
	retrying
}

func childChangeOf(c *handler.Call) *ChildChange {
	return &ChildChange{reading{c}, writing{c}, retrying{c}}
}

// Initial reports whether the call is not about one child, but about all Children: it is the
// first call in this process for a parent that is older than the process. Then Child is nil, and
// there is no Diff. What has happened to the children before the process began is not known.
func (c *ChildChange) Initial() bool { return c.Reason() == cause.Resume }

// Moved reports whether the child was a child of another parent before, or is one now, instead
// of being created or deleted. It is also set for a child that exists, and does not match the selectors of
// Settings.Watching anymore.
func (c *ChildChange) Moved() bool { return c.reading.call.Child.Moved }

// Child returns the child in its latest version; for a deleted child, it is the last one. It is
// nil if the call is about all children: see Initial.
func (c *ChildChange) Child() *object.Body {
	if c.reading.call.Child.Child == nil {
		return nil
	}
	return c.reading.call.Child.Child.Body()
}

// Children returns all children that the parent has now, sorted by resource, namespace, and
// name. Each of them is decoded when it is used.
func (c *ChildChange) Children() []*object.Body {
	if c.reading.call.Child.Children == nil {
		return nil
	}
	return bodiesOf(c.reading.call.Child.Children())
}

// bodiesOf returns children as handlers see them.
func bodiesOf(children []*object.Snapshot) []*object.Body {
	var all []*object.Body
	for _, child := range children {
		all = append(all, child.Body())
	}
	return all
}

// OnChildOf is Registry.OnChild for parents and children of Go types. The child is nil if the call
// is about all children: see ChildChange.Initial.
//
//	kopf.OnChildOf(registry, func(ctx context.Context, web *v1.Web, pod *corev1.Pod, c *kopf.ChildChange) error { … })
func OnChildOf[P, C client.Object](r *Registry, fn func(context.Context, P, C, *ChildChange) error, options ...ChildOption) {
	function := handler.Function{Object: newOf[P](), ChildObject: newOf[C]()}
	if fn != nil {
		function.Origin = fn
		function.Call = func(ctx context.Context, c *handler.Call) (any, error) {
			parent, err := objectOf[P](c)
			if err != nil {
				return nil, err
			}
			change := childChangeOf(c)
			var child C
			if body := change.Child(); body != nil {
				// A misfit of a child is none of the parent's, so the call is retried.
				child = newOf[C]()
				if err := body.View().Decode(child); err != nil {
					return nil, fmt.Errorf("the child does not fit its Go type: %w", err)
				}
			}
			return nil, fn(ctx, parent, child, change)
		}
	}
	r.declared().Add(handler.Child(Selector{}, Selector{}, function, options...))
}

// ChildLabel makes children belong to their parent by a label whose value is the uid of the
// parent, instead of by their owner references. It is for children whose owner references
// Kubernetes does not allow: in another namespace than their parent, or cluster-scoped while
// their parent is not; and for those that must survive their parent. It is an option of OnChild, and of daemons
// with WatchChildren.
func ChildLabel(key string) interface {
	ChildOption
	BackgroundOption
} {
	return handler.ChildLabel(key)
}
