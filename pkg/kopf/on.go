package kopf

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
)

// Registry is a set of declared handlers for an operator. The zero value is ready to use. A
// declaration in a nil Registry is a mistake, as of a variable that is not set yet: use NewRegistry,
// or DefaultRegistry. A Registry is safe for concurrent use. Mistakes in declarations are reported when
// an operator is made with the registry, all at once; those of nil registries by every operator.
type Registry struct {
	handlers registry.Registry

	configuration configuration
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{} }

// orDefault returns the registry, or DefaultRegistry if it is nil.
func orDefault(r *Registry) *Registry {
	if r == nil {
		return DefaultRegistry
	}
	return r
}

// declared returns the handlers. A nil registry has none, and every declaration in it is a mistake,
// which DefaultRegistry collects for all operators.
func (r *Registry) declared() *registry.Registry {
	if r == nil {
		return registry.Nil(&DefaultRegistry.handlers)
	}
	return &r.handlers
}

// Handlers returns the declared handlers of objects, or all mistakes in the declarations, for
// tools that look at them. The scheme has the Go types of typed handlers.
func (r *Registry) Handlers(scheme *runtime.Scheme) (registry.Handlers, error) {
	return r.declared().Handlers(scheme)
}

// Needs declares what handlers do with a client of their own, so that the roles that are derived for
// the operator permit it: see --learn (Settings.Permissions.LearnFile). It permits nothing by
// itself. The verbs are those of RBAC; those of a subresource have its name in
// front: "status/patch".
//
// The children of handlers of Ensure need get, list, watch, create, patch, and delete. The command
// rbac says that they are unknown, until these verbs are declared for at least one kind.
func (r *Registry) Needs(sel Selector, verbs ...string) {
	r.declared().AddNeed(registry.Need{Selector: sel, Verbs: verbs})
}

// DeclaredNeeds returns what Needs has declared, for tools that look at it.
func (r *Registry) DeclaredNeeds() []registry.Need { return r.declared().Needs() }

// DefaultRegistry is the registry in which the functions of this package declare handlers,
// and which an operator uses unless Options.Registry is another one.
var DefaultRegistry = NewRegistry()

// OnCreate declares a handler of creations: of objects that were never handled before.
//
// Specification: Handlers, "State-changing handlers".
func (r *Registry) OnCreate(sel Selector, fn ChangeFunc, options ...CreateOption) {
	r.declared().Add(handler.Create(sel, handler.Function{Change: fn}, options...))
}

// OnUpdate declares a handler of updates: of changes of the essence of an object, which is
// all of it but the status and the system metadata.
//
// Specification: Handlers, "State-changing handlers".
func (r *Registry) OnUpdate(sel Selector, fn ChangeFunc, options ...UpdateOption) {
	r.declared().Add(handler.Update(sel, handler.Function{Change: fn}, options...))
}

// OnDelete declares a handler of deletions. Unless the handler is Optional, a finalizer
// keeps the objects until the handler has finished.
//
// Specification: Handlers, "State-changing handlers".
func (r *Registry) OnDelete(sel Selector, fn ChangeFunc, options ...DeleteOption) {
	r.declared().Add(handler.Delete(sel, handler.Function{Change: fn}, options...))
}

// OnResume declares a handler of objects that existed before the operator started. It is
// called once for each object and run of the operator, together with the handlers of what
// else happened to the object. A function that is declared for creations, too, is called
// once in both cases.
//
// Specification: Handlers, "Resuming handlers".
func (r *Registry) OnResume(sel Selector, fn ChangeFunc, options ...ResumeOption) {
	r.declared().Add(handler.Resume(sel, handler.Function{Change: fn}, options...))
}

// OnField declares a handler of one field: it is called when the field is added, changed,
// or removed. It is also called for new objects that have the field; the Reason is then
// ReasonCreate, and the old value is absent. It is not called for deletions. The field is
// dotted ("metadata.labels"), or a JSON pointer if its keys contain dots
// ("/metadata/labels/example.com~1role"). It is appended to the handler's id, dotted.
//
// Specification: Handlers, "Field handlers".
func (r *Registry) OnField(sel Selector, field string, fn ChangeFunc, options ...UpdateOption) {
	r.declared().Add(handler.ForField(sel, []string{field}, handler.Function{Change: fn}, options...))
}

// OnEvent declares a handler of watch events. It is called for every event, in order, and
// is not retried.
//
// Specification: Handlers, "Event-watching handlers".
func (r *Registry) OnEvent(sel Selector, fn EventFunc, options ...EventOption) {
	r.declared().Add(handler.Watch(sel, handler.Function{Event: fn}, options...))
}

// Conditions declares that the status of the objects says what their handlers have come to,
// with the standard conditions that kubectl wait and kstatus understand. Ready is true when all
// handlers have finished, or if none applies to the object. Otherwise it is false, and either
// Reconciling is true, as long as handlers are retried, or Stalled, if one has failed permanently
// or cannot be called, so that a person must act. Daemons and timers count only if they cannot be
// called. Each condition, and the status itself, has the generation of the object as
// observedGeneration.
//
// The conditions are written when nothing is left to do at a generation, with the same write as
// the results of handlers, or else with one more. Handlers add other conditions with
// SetCondition of their arguments.
//
// It is for custom resources with a status subresource, whose schema has status.conditions and
// status.observedGeneration, and which have handlers. For any other, the operator does not
// start, or reports the resource if it is installed later. The guide shows the schema; its
// default of -1 for observedGeneration tells new objects from those that are ready.
func (r *Registry) Conditions(sel Selector) {
	r.declared().Add(handler.ForConditions(sel, nil))
}

// OnCreate declares a handler of creations in DefaultRegistry. See Registry.OnCreate.
func OnCreate(sel Selector, fn ChangeFunc, options ...CreateOption) {
	DefaultRegistry.OnCreate(sel, fn, options...)
}

// OnUpdate declares a handler of updates in DefaultRegistry. See Registry.OnUpdate.
func OnUpdate(sel Selector, fn ChangeFunc, options ...UpdateOption) {
	DefaultRegistry.OnUpdate(sel, fn, options...)
}

// OnDelete declares a handler of deletions in DefaultRegistry. See Registry.OnDelete.
func OnDelete(sel Selector, fn ChangeFunc, options ...DeleteOption) {
	DefaultRegistry.OnDelete(sel, fn, options...)
}

// OnResume declares a handler of objects that existed before the operator started, in
// DefaultRegistry. See Registry.OnResume.
func OnResume(sel Selector, fn ChangeFunc, options ...ResumeOption) {
	DefaultRegistry.OnResume(sel, fn, options...)
}

// OnField declares a handler of one field in DefaultRegistry. The path of the field begins at
// the object: "spec.size", not "size". See Registry.OnField.
func OnField(sel Selector, field string, fn ChangeFunc, options ...UpdateOption) {
	DefaultRegistry.OnField(sel, field, fn, options...)
}

// OnEvent declares a handler of watch events in DefaultRegistry. See Registry.OnEvent.
func OnEvent(sel Selector, fn EventFunc, options ...EventOption) {
	DefaultRegistry.OnEvent(sel, fn, options...)
}

// Conditions declares in DefaultRegistry that the status of objects says what their handlers
// have come to. See Registry.Conditions.
func Conditions(sel Selector) { DefaultRegistry.Conditions(sel) }

// Needs declares in DefaultRegistry what handlers do with a client. See Registry.Needs.
func Needs(sel Selector, verbs ...string) { DefaultRegistry.Needs(sel, verbs...) }
