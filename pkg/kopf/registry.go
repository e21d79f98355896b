package kopf

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
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

// declared returns the handlers. A nil registry has none, and every declaration in it is a mistake,
// which DefaultRegistry collects for all operators.
func (r *Registry) declared() *registry.Registry {
	if r == nil {
		return registry.Nil(&DefaultRegistry.handlers)
	}
	return &r.handlers
}

// Declarations returns what is declared, for the other packages of this module. Its type is internal.
func (r *Registry) Declarations() *registry.Registry { return r.declared() }

// Needs declares what handlers do with a separate client, so that the roles that are derived for
// the operator permit it: see --learn (Settings.Permissions.LearnFile). It permits nothing by
// itself. The verbs are those of RBAC; those of a subresource have its name in
// front: "status/patch".
//
// The children of handlers of Ensure need get, list, watch, create, patch, and delete. The command
// rbac says that they are unknown, until these verbs are declared for at least one kind.
func (r *Registry) Needs(sel Selector, verbs ...string) {
	r.declared().AddNeed(registry.Need{Selector: sel, Verbs: verbs})
}

// OnCreate declares a handler of creations: of objects that were never handled before.
//
// Specification: Handlers, "State-changing handlers".
func (r *Registry) OnCreate(sel Selector, fn func(context.Context, *Change) error, options ...ChangeOption) {
	r.declared().Add(handler.Create(sel, functionOf(fn, changeOf), options...))
}

// OnUpdate declares a handler of updates: of changes of the essence of an object, which is
// all of it but the status and the system metadata.
//
// Specification: Handlers, "State-changing handlers".
func (r *Registry) OnUpdate(sel Selector, fn func(context.Context, *Change) error, options ...ChangeOption) {
	r.declared().Add(handler.Update(sel, functionOf(fn, changeOf), options...))
}

// OnDelete declares a handler of deletions. Unless the handler is Optional, a finalizer
// keeps the objects until the handler has finished.
//
// Specification: Handlers, "State-changing handlers".
func (r *Registry) OnDelete(sel Selector, fn func(context.Context, *Change) error, options ...ChangeOption) {
	r.declared().Add(handler.Delete(sel, functionOf(fn, changeOf), options...))
}

// OnResume declares a handler of objects that existed before the operator started. It is
// called once for each object and run of the operator, together with the handlers of what
// else happened to the object. A function that is declared for creations, too, is called
// once in both cases.
//
// Specification: Handlers, "Resuming handlers".
func (r *Registry) OnResume(sel Selector, fn func(context.Context, *Change) error, options ...ChangeOption) {
	r.declared().Add(handler.Resume(sel, functionOf(fn, changeOf), options...))
}

// OnField declares a handler of one field: it is called when the field is added, changed,
// or removed. It is also called for new objects that have the field; the Reason is then
// ReasonCreate, and the old value is absent. It is not called for deletions. The field is
// dotted ("metadata.labels"), or a JSON pointer if its keys contain dots
// ("/metadata/labels/example.com~1role"). It is appended to the handler's id, dotted.
//
// Specification: Handlers, "Field handlers".
func (r *Registry) OnField(sel Selector, field string, fn func(context.Context, *Change) error, options ...ChangeOption) {
	r.declared().Add(handler.ForField(sel, []string{field}, functionOf(fn, changeOf), options...))
}

// OnEvent declares a handler of watch events. It is called for every event, in order, and
// is not retried.
//
// Specification: Handlers, "Event-watching handlers".
func (r *Registry) OnEvent(sel Selector, fn func(context.Context, *WatchEvent) error, options ...Option) {
	r.declared().Add(handler.Watch(sel, functionOf(fn, eventOf), options...))
}

// Conditions declares that the status of the objects contains the outcome of their handlers,
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
// The children are typed or unstructured, and have names that are always the same. What the function
// leaves out of a child belongs to others. It must be quick, and must not change anything. If it
// returns an error, no child is changed. It is called when the object is created or updated, when the operator starts, when
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
//     it has another controller: the handler fails with a convergence.NotOursError for this child.
//   - If the function returns no children although some exist, none is deleted, and the handler
//     fails with a convergence.EmptyError, unless AllowEmpty is given.
//   - Namespaces, PersistentVolumes, PersistentVolumeClaims, and CustomResourceDefinitions are
//     not deleted when they are no longer returned, except with Prune.
//   - Children with the annotation KeepAnnotation are never deleted.
//   - Nothing is deleted as long as a child is refused.
//   - Children of a handler that is no longer declared are left alone. To rename a function,
//     keep its former ID.
//
// If the API server refuses a child, the others are applied nevertheless, and the error names
// the child and the field.
func (r *Registry) Ensure(sel Selector, fn func(context.Context, *Change) ([]client.Object, error), options ...ChildOption) {
	ensure(r, sel, returningOf(fn, changeOf), options)
}

// ensure declares a handler of children.
func ensure(r *Registry, sel Selector, fn handler.Function, options []ChildOption) {
	declarations, err := handler.Ensure(sel, fn, options...)
	if err != nil {
		r.declared().Add(nil, err)
	}
	for _, d := range declarations {
		r.declared().Add(d, nil)
	}
}

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
func (r *Registry) OnDrift(parents Selector, fn func(context.Context, *Drift) (Resolution, error), options ...ChildOption) {
	r.declared().Add(handler.Drift(parents, returningOf(fn, driftOf), options...))
}

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
func (r *Registry) OnChild(parents, children Selector, fn func(context.Context, *ChildChange) error, options ...ChildOption) {
	r.declared().Add(handler.Child(parents, children, functionOf(fn, childChangeOf), options...))
}

// Daemon declares a function that runs for each object as long as the object exists. It is
// called when the object appears or the operator starts. It must return when the object is
// deleted or no longer matches, or when the operator stops. A finalizer keeps the object until
// its daemons have stopped.
//
// Specification: Daemons.
func (r *Registry) Daemon(sel Selector, fn func(context.Context, *Task) error, options ...BackgroundOption) {
	r.declared().Add(handler.Daemon(sel, functionOf(fn, taskOf), options...))
}

// Timer declares a function that is called for each object on a schedule, as long as the
// object exists and matches. Objects that only have timers have no finalizer.
//
// Specification: Timers.
func (r *Registry) Timer(sel Selector, fn func(context.Context, *Tick) error, options ...BackgroundOption) {
	r.declared().Add(handler.Timer(sel, functionOf(fn, tickOf), options...))
}

// OnValidate declares a handler that checks objects before the API server stores them. An
// error rejects the request, see Reject. The operator needs a server for its API servers to
// call: Settings.Admission.Server.
//
// Specification: Admission control, "Validation handlers".
func (r *Registry) OnValidate(sel Selector, fn func(context.Context, *Admission) error, options ...AdmissionOption) {
	r.declared().Add(handler.Validate(sel, functionOf(fn, admissionOf), options...))
}

// OnMutate declares a handler that changes objects before the API server stores them, with
// Admission.Patch. Otherwise, it is like OnValidate.
//
// Specification: Admission control, "Mutation handlers".
func (r *Registry) OnMutate(sel Selector, fn func(context.Context, *Admission) error, options ...AdmissionOption) {
	r.declared().Add(handler.Mutate(sel, functionOf(fn, admissionOf), options...))
}
