package kopf

import (
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
)

// Registry is a set of declared handlers, for an operator. Its zero value is
// ready to use, and safe for concurrent use. Mistakes in declarations are
// reported, all of them at once, when an operator starts with the registry.
type Registry struct {
	handlers registry.Registry
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry { return &Registry{} }

// declared are the handlers; those of the default registry, if there is none.
func (r *Registry) declared() *registry.Registry {
	if r == nil {
		r = DefaultRegistry
	}
	return &r.handlers
}

// DefaultRegistry is where the functions of this package declare handlers, and
// what an operator takes unless it is given another registry.
var DefaultRegistry = NewRegistry()

// OnCreate declares a handler of objects that were never handled before.
//
// Specification: Handlers, "State-changing handlers".
func (r *Registry) OnCreate(sel Selector, fn ChangeFunc, options ...CreateOption) {
	r.declared().Add(handler.Create(sel, handler.Function{Change: fn}, options...))
}

// OnUpdate declares a handler of changes of the object's essence: of everything
// but the status and what the system keeps in the metadata.
//
// Specification: Handlers, "State-changing handlers".
func (r *Registry) OnUpdate(sel Selector, fn ChangeFunc, options ...UpdateOption) {
	r.declared().Add(handler.Update(sel, handler.Function{Change: fn}, options...))
}

// OnDelete declares a handler of deletions. Objects get a finalizer, and are not
// deleted before the handler has finished; unless the handler is Optional.
//
// Specification: Handlers, "State-changing handlers".
func (r *Registry) OnDelete(sel Selector, fn ChangeFunc, options ...DeleteOption) {
	r.declared().Add(handler.Delete(sel, handler.Function{Change: fn}, options...))
}

// OnResume declares a handler of objects that were there before the operator. It
// is called once for every object in the operator's life, together with the
// handlers of whatever else has happened to the object. The same function can be
// declared for creations too, and is then called once in either case.
//
// Specification: Handlers, "Resuming handlers".
func (r *Registry) OnResume(sel Selector, fn ChangeFunc, options ...ResumeOption) {
	r.declared().Add(handler.Resume(sel, handler.Function{Change: fn}, options...))
}

// OnField declares a handler of changes of one field: added, changed or removed.
// It is also called for new objects that have the field, where Reason is
// ReasonCreate and the old value is absent; it is not called for deletions. The
// field is dotted ("metadata.labels"), or a JSON pointer if its keys have dots
// themselves ("/metadata/labels/example.com~1role"). The handler's id gets it
// appended, dotted.
//
// Specification: Handlers, "Field handlers".
func (r *Registry) OnField(sel Selector, field string, fn ChangeFunc, options ...UpdateOption) {
	r.declared().Add(handler.ForField(sel, []string{field}, handler.Function{Change: fn}, options...))
}

// OnEvent declares a handler of watch events. It is called for every one, in
// order, and never retried.
//
// Specification: Handlers, "Event-watching handlers".
func (r *Registry) OnEvent(sel Selector, fn EventFunc, options ...EventOption) {
	r.declared().Add(handler.Watch(sel, handler.Function{Event: fn}, options...))
}

// OnCreate declares a handler of objects that were never handled before, in the
// default registry; see Registry.OnCreate.
func OnCreate(sel Selector, fn ChangeFunc, options ...CreateOption) {
	DefaultRegistry.OnCreate(sel, fn, options...)
}

// OnUpdate declares a handler of changes of the object's essence, in the default
// registry; see Registry.OnUpdate.
func OnUpdate(sel Selector, fn ChangeFunc, options ...UpdateOption) {
	DefaultRegistry.OnUpdate(sel, fn, options...)
}

// OnDelete declares a handler of deletions, in the default registry; see
// Registry.OnDelete.
func OnDelete(sel Selector, fn ChangeFunc, options ...DeleteOption) {
	DefaultRegistry.OnDelete(sel, fn, options...)
}

// OnResume declares a handler of objects that were there before the operator, in
// the default registry; see Registry.OnResume.
func OnResume(sel Selector, fn ChangeFunc, options ...ResumeOption) {
	DefaultRegistry.OnResume(sel, fn, options...)
}

// OnField declares a handler of changes of one field, of new objects too, in the
// default registry; see Registry.OnField.
func OnField(sel Selector, field string, fn ChangeFunc, options ...UpdateOption) {
	DefaultRegistry.OnField(sel, field, fn, options...)
}

// OnEvent declares a handler of every watch event, in the default registry; see
// Registry.OnEvent.
func OnEvent(sel Selector, fn EventFunc, options ...EventOption) {
	DefaultRegistry.OnEvent(sel, fn, options...)
}
