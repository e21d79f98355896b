package kopf

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// Typed declares handlers of objects of a Go type, as kubebuilder projects have them. The
// resource is that of the type in the operator's scheme. For returns it.
//
// A handler is not called for an object that does not fit its type, such as one with a text
// in place of a number. That is not an attempt: nothing is stored, and nothing counts against
// the limits of the handler. An event and the log name the field and the ways out, and the
// handler is called when the object fits. Other handlers are called as usual. Only the
// deletion of an object that was handled before waits for a deletion handler that does not
// fit; see OnMisfit.
type Typed[T client.Object] struct{ registry *Registry }

// For declares handlers of typed objects in a registry, such as DefaultRegistry. T
// is a pointer type, such as *corev1.Pod.
//
//	evc := kopf.For[*v1.EphemeralVolumeClaim](registry)
//	evc.OnCreate(createFn)
func For[T client.Object](r *Registry) Typed[T] { return Typed[T]{r} }

// ChangeOf is a Change of a typed object. The operator keeps the fields that the Go type
// does not know on the object.
type ChangeOf[T client.Object] struct {
	*Change
	object T
}

// Bind sets the arguments, and decodes the object. Operators do that before they call a
// handler; tests do it to call one by hand. If the object does not fit the type, it returns a
// MisfitError.
func (c *ChangeOf[T]) Bind(to *Change) (err error) {
	c.Change = to
	if to.Misfit() == nil {
		c.object, err = decode[T](to.Body().Raw())
	}
	return err
}

// Object returns the object as it is now. Changing it has no effect: use Update, or the
// Patch. If the object does not fit the type, the handler is not called, except with
// OnMisfit(CallUntyped): then it returns nil.
func (c *ChangeOf[T]) Object() T { return c.object }

// OldObject returns the object as it was handled last: its essence and its identity,
// without a status, decoded at every call. It returns nil if the object was never handled, or
// if only hashes of the old values are stored; Change.Old tells these apart.
//
// If the former state does not fit the type, it returns a MisfitError. If the handler returns
// that error, the call does not count as an attempt, as if the object did not fit. Otherwise
// the handler can use Change.Old, which needs no type.
func (c *ChangeOf[T]) OldObject() (T, error) {
	var none T
	old := oldOf(c.Change)
	if old == nil {
		return none, nil
	}
	typed, err := decode[T](old)
	return typed, former(err)
}

// former marks an error of decode as one of the former state.
func former(err error) error {
	if misfit := handler.AsMisfit(err); misfit != nil {
		misfit.Former = true
	}
	return err
}

// Update changes the object with a function, which is called with the latest version of it
// when the patch is written, possibly several times. The operator writes only what the
// function has changed.
func (c *ChangeOf[T]) Update(change func(T) error) {
	update(c.Patch(), change)
}

// update adds a typed transformation to a patch.
func update[T client.Object](to *Patch, change func(T) error) {
	to.Apply(func(u *unstructured.Unstructured) error {
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

// EventOf is a WatchEvent of a typed object.
type EventOf[T client.Object] struct {
	*WatchEvent
	object T
}

// Bind sets the arguments, and decodes the object. See ChangeOf.Bind.
func (e *EventOf[T]) Bind(to *WatchEvent) (err error) {
	e.WatchEvent = to
	e.object, err = decode[T](to.Body().Raw())
	return err
}

// Object returns the object of the event. Changing it has no effect. If the object does not
// fit the type, the handler is not called.
func (e *EventOf[T]) Object() T { return e.object }

// OnCreate is Registry.OnCreate for the type.
func (t Typed[T]) OnCreate(fn func(context.Context, *ChangeOf[T]) error, options ...CreateOption) {
	t.registry.declared().Add(handler.Create(Selector{}, changing(fn), options...))
}

// OnUpdate is Registry.OnUpdate for the type.
func (t Typed[T]) OnUpdate(fn func(context.Context, *ChangeOf[T]) error, options ...UpdateOption) {
	t.registry.declared().Add(handler.Update(Selector{}, changing(fn), options...))
}

// OnDelete is Registry.OnDelete for the type.
func (t Typed[T]) OnDelete(fn func(context.Context, *ChangeOf[T]) error, options ...DeleteOption) {
	t.registry.declared().Add(handler.Delete(Selector{}, changing(fn), options...))
}

// OnResume is Registry.OnResume for the type.
func (t Typed[T]) OnResume(fn func(context.Context, *ChangeOf[T]) error, options ...ResumeOption) {
	t.registry.declared().Add(handler.Resume(Selector{}, changing(fn), options...))
}

// OnField is Registry.OnField for the type.
func (t Typed[T]) OnField(field string, fn func(context.Context, *ChangeOf[T]) error, options ...UpdateOption) {
	t.registry.declared().Add(handler.ForField(Selector{}, []string{field}, changing(fn), options...))
}

// OnEvent is Registry.OnEvent for the type.
func (t Typed[T]) OnEvent(fn func(context.Context, *EventOf[T]) error, options ...EventOption) {
	t.registry.declared().Add(handler.Watch(Selector{}, watching(fn), options...))
}

// Conditions is Registry.Conditions for the type.
func (t Typed[T]) Conditions() {
	t.registry.declared().Add(handler.ForConditions(Selector{}, newOf[T]()))
}

// watching wraps a typed handler of events.
func watching[T client.Object](fn func(context.Context, *EventOf[T]) error) handler.Function {
	if fn == nil {
		return handler.Function{Object: newOf[T]()}
	}
	call := func(ctx context.Context, e *WatchEvent) error {
		typed := &EventOf[T]{}
		if err := typed.Bind(e); err != nil {
			return err
		}
		return fn(ctx, typed)
	}
	return handler.Function{Event: call, Origin: fn, Object: newOf[T]()}
}

// changing wraps a typed handler of changes.
func changing[T client.Object](fn func(context.Context, *ChangeOf[T]) error) handler.Function {
	if fn == nil {
		return handler.Function{Object: newOf[T]()}
	}
	call := func(ctx context.Context, c *Change) error {
		typed := &ChangeOf[T]{}
		if err := typed.Bind(c); err != nil {
			return err
		}
		return fn(ctx, typed)
	}
	return handler.Function{Change: call, Origin: fn, Object: newOf[T]()}
}

// oldOf returns the whole object as it was handled last, or nil if it is unknown.
func oldOf(c *Change) map[string]any {
	essence := c.OldEssence()
	if essence == nil {
		return nil
	}
	old := maps.Clone(essence)
	old["apiVersion"], old["kind"] = c.Body().APIVersion(), c.Body().Kind()
	metadata, _ := essence["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"], metadata["uid"] = c.Name(), string(c.UID())
	if c.Namespace() != "" {
		metadata["namespace"] = c.Namespace()
	}
	old["metadata"] = metadata
	return old
}

// newOf returns an empty object. It returns nil if T is an interface, which is a mistake in
// the declaration: the type is unknown.
func newOf[T client.Object]() T {
	if reflect.TypeFor[T]().Kind() == reflect.Interface {
		var none T
		return none
	}
	typed, _ := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	return typed
}

// decode decodes an object. It returns nil with an error, which is a MisfitError.
func decode[T client.Object](raw map[string]any) (T, error) {
	typed := newOf[T]()
	if err := handler.DecodeObject(raw, typed); err != nil {
		var none T
		return none, err
	}
	return typed, nil
}
