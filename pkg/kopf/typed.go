package kopf

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// Typed declares handlers of objects of a Go type, as kubebuilder projects have them. The
// resource is that of the type in the operator's scheme. For returns it.
//
// A handler gets the object, decoded, as it is when the call begins. Changing it has no effect: use
// Update, or the Patch. For a daemon or a timer, Task.Decode returns it as it is now. The operator
// keeps the fields that the Go type does not know.
//
// A handler is not called for an object that does not fit its type, such as one with a text
// in place of a number. That is not an attempt: nothing is stored, and nothing counts against
// the limits of the handler. An event and the log name the field and the ways out, and the
// handler is called when the object fits. Other handlers are called as usual. A daemon is
// stopped meanwhile, with stop.Misfit; an index has no values of the object. Only the
// deletion of an object that was handled before waits for a deletion handler that does not
// fit; see CallUntyped and ReleaseMisfits.
type Typed[T client.Object] struct{ registry *Registry }

// For declares handlers of typed objects in a registry, such as DefaultRegistry. T
// is a pointer type, such as *corev1.Pod.
//
//	sites := kopf.For[*v1.Site](registry)
//	sites.OnCreate(func(ctx context.Context, site *v1.Site, c *kopf.Change) error { … }, kopf.ID("create"))
func For[T client.Object](r *Registry) Typed[T] { return Typed[T]{r} }

// OnCreate is Registry.OnCreate for the type.
func (t Typed[T]) OnCreate(fn func(context.Context, T, *Change) error, options ...ChangeOption) {
	t.registry.declared().Add(handler.Create(Selector{}, typedOf(fn, changeOf), options...))
}

// OnUpdate is Registry.OnUpdate for the type.
func (t Typed[T]) OnUpdate(fn func(context.Context, T, *Change) error, options ...ChangeOption) {
	t.registry.declared().Add(handler.Update(Selector{}, typedOf(fn, changeOf), options...))
}

// OnDelete is Registry.OnDelete for the type. The object is nil if the handler is called
// because of CallUntyped.
func (t Typed[T]) OnDelete(fn func(context.Context, T, *Change) error, options ...ChangeOption) {
	t.registry.declared().Add(handler.Delete(Selector{}, typedOf(fn, changeOf), options...))
}

// OnResume is Registry.OnResume for the type.
func (t Typed[T]) OnResume(fn func(context.Context, T, *Change) error, options ...ChangeOption) {
	t.registry.declared().Add(handler.Resume(Selector{}, typedOf(fn, changeOf), options...))
}

// OnField is Registry.OnField for the type.
func (t Typed[T]) OnField(field string, fn func(context.Context, T, *Change) error, options ...ChangeOption) {
	t.registry.declared().Add(handler.ForField(Selector{}, []string{field}, typedOf(fn, changeOf), options...))
}

// OnEvent is Registry.OnEvent for the type.
func (t Typed[T]) OnEvent(fn func(context.Context, T, *WatchEvent) error, options ...Option) {
	t.registry.declared().Add(handler.Watch(Selector{}, typedOf(fn, eventOf), options...))
}

// OnDrift is Registry.OnDrift for the type. As long as the parent does not fit it, the
// children are not restored.
func (t Typed[T]) OnDrift(fn func(context.Context, T, *Drift) (Resolution, error), options ...ChildOption) {
	t.registry.declared().Add(handler.Drift(Selector{}, typedReturningOf(fn, driftOf), options...))
}

// OnChild is Registry.OnChild for the type. Use OnChildOf if the children have a Go
// type, too.
func (t Typed[T]) OnChild(children Selector, fn func(context.Context, T, *ChildChange) error, options ...ChildOption) {
	t.registry.declared().Add(handler.Child(Selector{}, children, typedOf(fn, childChangeOf), options...))
}

// Daemon is Registry.Daemon for the type.
func (t Typed[T]) Daemon(fn func(context.Context, T, *Task) error, options ...BackgroundOption) {
	t.registry.declared().Add(handler.Daemon(Selector{}, typedOf(fn, taskOf), options...))
}

// Timer is Registry.Timer for the type.
func (t Typed[T]) Timer(fn func(context.Context, T, *Tick) error, options ...BackgroundOption) {
	t.registry.declared().Add(handler.Timer(Selector{}, typedOf(fn, tickOf), options...))
}

// OnValidate is Registry.OnValidate for the type. The object is the one that the API server will store, or, for a
// deletion, the one that it will delete. It is nil if the review is about something of another kind,
// as with the subresources "scale" and "exec"; see Admission.Body. An object that does not fit the type
// is rejected with 422.
func (t Typed[T]) OnValidate(fn func(context.Context, T, *Admission) error, options ...AdmissionOption) {
	t.registry.declared().Add(handler.Validate(Selector{}, typedOf(fn, admissionOf), options...))
}

// OnMutate is Registry.OnMutate for the type. The object is as for OnValidate. One that does not fit the type
// is passed on unchanged, because the API server checks the schema of custom resources after the
// mutations.
func (t Typed[T]) OnMutate(fn func(context.Context, T, *Admission) error, options ...AdmissionOption) {
	t.registry.declared().Add(handler.Mutate(Selector{}, typedOf(fn, admissionOf), options...))
}

// Ensure is Registry.Ensure for the type.
func (t Typed[T]) Ensure(fn func(context.Context, T, *Change) ([]client.Object, error), options ...ChildOption) {
	ensure(t.registry, Selector{}, typedReturningOf(fn, changeOf), options)
}

// Conditions is Registry.Conditions for the type.
func (t Typed[T]) Conditions() {
	t.registry.declared().Add(handler.ForConditions(Selector{}, newOf[T]()))
}

// Update changes the object of a handler with a function, which is called with the latest version
// of the object when the patch is written, possibly several times. The operator writes only what
// the function has changed. The arguments are those of the handler, such as a Change:
//
//	kopf.Update(c, func(site *v1.Site) error {
//		site.Status.Ready = true
//		return nil
//	})
//
// For a daemon or a timer, that is after it has returned. A mutation gets the result of the
// earlier handlers.
//
// The type must be that of the object, or have some of its fields. If it is a type of another kind in the
// operator's scheme, the handler fails permanently.
func Update[T client.Object](arguments interface{ Patch() *patch.Patch }, change func(T) error) {
	arguments.Patch().Apply(func(u *unstructured.Unstructured) error {
		if err := checkType[T](arguments, u); err != nil {
			return Permanent(err)
		}
		before := newOf[T]()
		after := newOf[T]()
		for _, typed := range []T{before, after} {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
				return fmt.Errorf("the object does not fit %T: %w", typed, err)
			}
		}
		if err := change(after); err != nil {
			return err
		}
		from, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
		if err != nil {
			return err
		}
		to, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
		if err != nil {
			return err
		}
		u.Object = patch.ApplyMerge(u.Object, patch.Difference(from, to))
		return nil
	})
}

// checkType returns an error if T cannot be the type of the object. Without it, the fields that the
// type shares with the object would be changed, and all others would be lost without a word. A type that the
// scheme of the client does not have can be a part of the right one.
func checkType[T client.Object](arguments any, u *unstructured.Unstructured) error {
	typed := newOf[T]()
	if any(typed) == nil {
		return errors.New("kopf.Update was called with a function of an interface: use the type of the object, a pointer such as *v1.Pod")
	}
	of, ok := arguments.(interface{ Client() client.Client })
	_, isPartial := any(typed).(*metav1.PartialObjectMetadata) // fits every object
	if !ok || of.Client() == nil || isPartial {
		return nil
	}
	kinds, _, err := of.Client().Scheme().ObjectKinds(typed)
	if err != nil {
		return nil //nolint:nilerr // the scheme does not know the type
	}
	object := u.GroupVersionKind()
	isObject := func(kind schema.GroupVersionKind) bool { return kind.GroupKind() == object.GroupKind() }
	if object.Kind == "" || slices.ContainsFunc(kinds, isObject) {
		return nil
	}
	return fmt.Errorf("kopf.Update was called with a function of %T, which is the type of %s, but the object is a %s: use the type of the object",
		typed, kinds[0].GroupKind(), object.GroupKind())
}
