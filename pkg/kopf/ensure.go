package kopf

import (
	"context"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/handler"
)

type (
	// ChildrenFunc returns the children that an object should have. The operator calls it
	// whenever that may have changed, so it must be quick, and must not change anything. Its
	// children are typed or unstructured, and have names that are always the same. What
	// it leaves out of a child belongs to others. If it returns an error, no child is changed.
	ChildrenFunc = handler.ChildrenFunc
	// EnsureOption is an option of Ensure.
	EnsureOption = handler.EnsureOption
	// ConvergenceOption is an option of Ensure alone, for functions of your own that return
	// options.
	ConvergenceOption = handler.ConvergenceOption

	// ChildError is why one child is not what it should be. The error of the handler has one
	// for each such child; find them with errors.As.
	ChildError = convergence.ChildError
	// NotOursError is why an existing object is not taken over as a child. The object was not
	// changed.
	NotOursError = convergence.NotOursError
	// EmptyError is why children are not deleted although the function returned none.
	EmptyError = convergence.EmptyError
)

// KeepAnnotation is an annotation of children. A child with it is never deleted, neither by the
// operator nor with its parent; the value "false" takes that back. You can set it in the
// function, or with kubectl.
const KeepAnnotation = convergence.KeepAnnotation

// Ensure declares a function that returns the children that an object should have. The operator
// makes it so: it creates missing children, changes those that differ, restores what others
// change in them unless OnDrift accepts it, and deletes those that are no longer returned.
// Settings.Name must be set: it is the field manager of the children, and must stay the same for
// ever.
//
//	func shop(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
//		return []client.Object{deployment(c), service(c)}, nil
//	}
//
//	kopf.Ensure(kopf.Resource("shops"), shop)
//
// The function is called when the object is created or updated, when the operator starts, when
// another client changes a child, and when an index of WatchIndex changes. It has progress, retries, limits, and filters as all
// handlers of changes. At rest, the operator makes no requests.
//
// A child belongs to one handler of one object. It gets an owner reference, and is deleted
// together with the object. A cluster-scoped child, or one in another namespace, cannot have
// one; the object gets a finalizer instead, and the operator deletes such children.
//
// The operator does not do what could destroy something by mistake:
//
//   - An object that exists already is not changed, unless AdoptExisting is given, and never if
//     it has another controller: the handler fails with a NotOursError for this child.
//   - If the function returns no children although some exist, none is deleted, and the handler
//     fails with an EmptyError, unless AllowEmpty is given.
//   - Namespaces, PersistentVolumes, PersistentVolumeClaims, and CustomResourceDefinitions are
//     not deleted when they are no longer returned, except with Prune.
//   - Children with the annotation KeepAnnotation are never deleted.
//   - Nothing is deleted as long as a child is refused.
//   - Children of a handler that is no longer declared are left alone. To rename a function,
//     keep its former ID.
//
// If the API server refuses a child, the others are applied nevertheless, and the error names
// the child and the field.
func (r *Registry) Ensure(sel Selector, fn ChildrenFunc, options ...EnsureOption) {
	ensure(r, sel, handler.Function{Ensures: fn}, options)
}

// ensure declares a handler of children.
func ensure(r *Registry, sel Selector, fn handler.Function, options []EnsureOption) {
	declarations, err := handler.Ensure(sel, fn, options...)
	if err != nil {
		r.declared().Add(nil, err)
	}
	for _, d := range declarations {
		r.declared().Add(d, nil)
	}
}

// Ensure declares a function that returns the children that an object should have, in
// DefaultRegistry. See Registry.Ensure.
func Ensure(sel Selector, fn ChildrenFunc, options ...EnsureOption) {
	DefaultRegistry.Ensure(sel, fn, options...)
}

// Ensure is Registry.Ensure for the type.
func (t Typed[T]) Ensure(fn func(context.Context, *ChangeOf[T]) ([]client.Object, error), options ...EnsureOption) {
	function := handler.Function{Object: newOf[T]()}
	if fn != nil {
		function.Origin = fn
		function.Ensures = func(ctx context.Context, c *Change) ([]client.Object, error) {
			typed := &ChangeOf[T]{}
			if err := typed.Bind(c); err != nil {
				return nil, err
			}
			return fn(ctx, typed)
		}
	}
	ensure(t.registry, Selector{}, function, options)
}

// AllowEmpty accepts that the function of Ensure returns no children although some exist: they
// are deleted.
func AllowEmpty() ConvergenceOption { return handler.AllowEmpty() }

// AdoptExisting makes Ensure take over objects that exist already, unless they have another
// controller or belong to another handler. The operator owns the fields that the function
// returns from then on, and deletes the object when it is no longer returned.
func AdoptExisting() ConvergenceOption { return handler.AdoptExisting() }

// WaitReady makes Ensure apply the children of a wave only when those of the earlier waves are
// ready, as kstatus defines it: a Deployment has its replicas, a Job is complete. The handler
// does not wait, and succeeds; the operator calls it again when a child becomes ready. If a
// child fails, so does the handler. With Conditions, the object is Ready only while all children
// are. See InWave.
func WaitReady() ConvergenceOption { return handler.WaitReady() }

// WatchIndex makes Ensure call the function also when the keys or values of an index change, for
// all objects that the handler selects. A change is a key or value that appears, disappears, or
// differs, as reflect.DeepEqual compares them: an object that is indexed again with equal values
// calls nothing. So index only what the function needs.
//
//	kopf.Ensure(kopf.Resource("shops"), shop, kopf.WatchIndex(themes))
//
// The objects take turns, about 100 per second, and all of them within 10 seconds. Many changes
// at the same time are one, and an object is called at most once per second. If the function
// returns what it returned before, nothing is written. The index must be filled by a function of
// the same registry: otherwise, the operator does not start.
//
// A changed index does not change which objects the filters select: they are checked when the
// object itself changes, and when the operator starts.
func WatchIndex(indices ...AnyIndex) ConvergenceOption { return handler.WatchIndex(indices...) }

// Prune lets Ensure delete children of protected kinds when they are no longer returned:
// "Namespace", "PersistentVolume", "PersistentVolumeClaim", or
// "CustomResourceDefinition.apiextensions.k8s.io". With these, their data is deleted. All other
// kinds are deleted without this option.
func Prune(kinds ...string) ConvergenceOption { return handler.Prune(kinds...) }

// Recreate lets Ensure delete a child of one of the kinds and create it again if the API server
// refuses a change of its fields, such as of an immutable one: "Job.batch", "StatefulSet.apps". The
// API server must accept the replacement first, in a dry run. This also applies to what other clients have
// changed. Without this option, the handler fails. The protected kinds of Prune are never
// recreated.
func Recreate(kinds ...string) ConvergenceOption { return handler.Recreate(kinds...) }

// InWave puts children into a wave, and returns them. Ensure applies the waves in the order of
// their numbers, and begins a wave only if no child of the earlier ones was refused. All
// children are in wave 0 by default. Within a wave, kinds that others need are first: namespaces,
// resource definitions, accounts and roles, secrets and config maps, claims, and services.
//
//	return append(kopf.InWave(-1, database), web, service), nil
func InWave(wave int, children ...client.Object) []client.Object {
	for _, child := range children {
		annotations := child.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[convergence.WaveAnnotation] = strconv.Itoa(wave)
		child.SetAnnotations(annotations)
	}
	return children
}
