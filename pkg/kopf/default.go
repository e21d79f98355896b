package kopf

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/login"
)

// DefaultRegistry is the registry in which the functions of this package declare handlers. Main
// and Commands use it, unless they are told otherwise.
var DefaultRegistry = NewRegistry()

// OnCreate declares a handler of creations, in DefaultRegistry. See Registry.OnCreate.
func OnCreate(sel Selector, fn func(context.Context, *Change) error, options ...ChangeOption) {
	DefaultRegistry.OnCreate(sel, fn, options...)
}

// OnUpdate declares a handler of updates, in DefaultRegistry. See Registry.OnUpdate.
func OnUpdate(sel Selector, fn func(context.Context, *Change) error, options ...ChangeOption) {
	DefaultRegistry.OnUpdate(sel, fn, options...)
}

// OnDelete declares a handler of deletions, in DefaultRegistry. See Registry.OnDelete.
func OnDelete(sel Selector, fn func(context.Context, *Change) error, options ...ChangeOption) {
	DefaultRegistry.OnDelete(sel, fn, options...)
}

// OnResume declares a handler of objects that existed before the operator started, in
// DefaultRegistry. See Registry.OnResume.
func OnResume(sel Selector, fn func(context.Context, *Change) error, options ...ChangeOption) {
	DefaultRegistry.OnResume(sel, fn, options...)
}

// OnField declares a handler of one field, whose path begins at the object, as in "spec.size",
// in DefaultRegistry. See Registry.OnField.
func OnField(sel Selector, field string, fn func(context.Context, *Change) error, options ...ChangeOption) {
	DefaultRegistry.OnField(sel, field, fn, options...)
}

// OnEvent declares a handler of watch events, in DefaultRegistry. See Registry.OnEvent.
func OnEvent(sel Selector, fn func(context.Context, *WatchEvent) error, options ...Option) {
	DefaultRegistry.OnEvent(sel, fn, options...)
}

// Ensure declares a function that returns the children that an object should have, in
// DefaultRegistry. See Registry.Ensure.
func Ensure(sel Selector, fn func(context.Context, *Change) ([]client.Object, error), options ...ChildOption) {
	DefaultRegistry.Ensure(sel, fn, options...)
}

// OnDrift declares a function that decides what becomes of the changes that others make to the
// children of Ensure, in DefaultRegistry. See Registry.OnDrift.
func OnDrift(parents Selector, fn func(context.Context, *Drift) (Resolution, error), options ...ChildOption) {
	DefaultRegistry.OnDrift(parents, fn, options...)
}

// OnChild declares a handler of the children of objects, in DefaultRegistry. See
// Registry.OnChild.
func OnChild(parents, children Selector, fn func(context.Context, *ChildChange) error, options ...ChildOption) {
	DefaultRegistry.OnChild(parents, children, fn, options...)
}

// Daemon declares a function that runs for each object as long as the object exists, in
// DefaultRegistry. See Registry.Daemon.
func Daemon(sel Selector, fn func(context.Context, *Task) error, options ...BackgroundOption) {
	DefaultRegistry.Daemon(sel, fn, options...)
}

// Timer declares a function that is called for each object on a schedule, in DefaultRegistry.
// See Registry.Timer.
func Timer(sel Selector, fn func(context.Context, *Tick) error, options ...BackgroundOption) {
	DefaultRegistry.Timer(sel, fn, options...)
}

// OnValidate declares a handler that checks objects before the API server stores them, in
// DefaultRegistry. See Registry.OnValidate.
func OnValidate(sel Selector, fn func(context.Context, *Admission) error, options ...AdmissionOption) {
	DefaultRegistry.OnValidate(sel, fn, options...)
}

// OnMutate declares a handler that changes objects before the API server stores them, in
// DefaultRegistry. See Registry.OnMutate.
func OnMutate(sel Selector, fn func(context.Context, *Admission) error, options ...AdmissionOption) {
	DefaultRegistry.OnMutate(sel, fn, options...)
}

// OnConvert declares how objects of a custom resource are converted from one version to another, in
// DefaultRegistry. See Registry.OnConvert.
func OnConvert(sel Selector, from, to string, fn func(context.Context, *Conversion) error) {
	DefaultRegistry.OnConvert(sel, from, to, fn)
}

// OnStartup declares a handler that is called when the operator starts, in DefaultRegistry.
// See Registry.OnStartup.
func OnStartup(fn func(context.Context, *Startup) error, options ...Option) {
	DefaultRegistry.OnStartup(fn, options...)
}

// OnCleanup declares a handler that is called when the operator ends, in DefaultRegistry. See
// Registry.OnCleanup.
func OnCleanup(fn func(context.Context, *Activity) error, options ...Option) {
	DefaultRegistry.OnCleanup(fn, options...)
}

// OnLogin declares a handler that returns how to connect to the cluster, in DefaultRegistry.
// See Registry.OnLogin.
func OnLogin(fn func(context.Context, *Activity) (*login.Connection, error), options ...Option) {
	DefaultRegistry.OnLogin(fn, options...)
}

// OnProbe declares a handler whose result becomes a part of the health endpoint, in
// DefaultRegistry. See Registry.OnProbe.
func OnProbe(fn func(context.Context, *Activity) (any, error), options ...Option) {
	DefaultRegistry.OnProbe(fn, options...)
}

// Conditions declares that the status of objects has the outcome of their handlers, in
// DefaultRegistry. See Registry.Conditions.
func Conditions(sel Selector) {
	DefaultRegistry.Conditions(sel)
}

// Needs declares what handlers do with a client, in DefaultRegistry. See Registry.Needs.
func Needs(sel Selector, verbs ...string) {
	DefaultRegistry.Needs(sel, verbs...)
}

// Configure changes the settings before the operator starts, in DefaultRegistry. See
// Registry.Configure.
func Configure(change func(*Settings)) { DefaultRegistry.Configure(change) }
