// Package kopf is the front door: a framework for Kubernetes operators that
// consist of handlers.
//
//	func createFn(ctx context.Context, c *kopf.Change) error {
//		c.Logger().Info("and here we are", "spec", c.Spec().Map())
//		return nil
//	}
//
//	func main() {
//		kopf.OnCreate(kopf.Resource("kopfexamples"), createFn)
//		kopf.Main()
//	}
//
// Objects are handled from their creation to their deletion. The framework
// finds out what has happened to an object and what has changed, calls the
// handlers, retries them, keeps their progress on the object itself, and holds
// the object until its deletion handlers are done. Nothing is lost when the
// operator is restarted, and nothing is done twice that was recorded once.
//
// # Handlers
//
// OnCreate, OnUpdate, OnDelete, OnResume and OnField are called for changes, and
// retried until they succeed; their argument is a Change. OnEvent is called for
// every single watch event, and is not retried. The functions of this package
// use DefaultRegistry; the methods of a Registry of one's own do the same.
// Resource and its siblings select the resources; options restrict a handler to
// some objects (Labels, Annotations, Field, Value, When) and limit its attempts
// (Retries, Timeout, Backoff, Errors).
//
// A handler returns nil, or an error: Temporary to be called again after a
// delay, Permanent to give up, any other to be called again after the backoff.
// It reads the object through the Change, changes it with Change.Patch, stores a
// result in the status with Change.SetResult, and splits its work into
// sub-handlers with Change.Subhandler.
//
// For declares handlers of typed objects, as a kubebuilder project has them.
//
// Which options fit which handlers, the compiler knows:
//
//	ID, Param                              all of them
//	Labels, Annotations, When              those of objects
//	Field, Value                           those of objects but OnField, which has its field, and sub-handlers
//	ValueBefore, ValueAfter                OnUpdate, OnField
//	Errors, Retries, Timeout, Backoff      all but OnEvent, OnValidate, OnMutate
//	Optional, HoldOnFailure                OnDelete
//	Deleted                                OnResume
//	InitialDelay, InitialDelayFunc         Daemon, Timer
//	CancellationBackoff, …Timeout, …Polling   Daemon
//	Interval, Sharp, Idle                  Timer
//	Operations, Subresource, SideEffects,
//	IgnoreFailures, Persistent             OnValidate, OnMutate
//
// In the comments, "Specification" names a chapter of the documentation of Kopf,
// https://kopf.readthedocs.io, whose behaviour this is; the essence of an object is
// all of it but the status and what the system keeps in the metadata.
//
// # Daemons and timers
//
// Daemon declares a function that accompanies every object until the object is
// deleted, does not match any longer, or the operator stops; its argument is a
// Task, whose Wait and Stopped tell when to return. An object is not gone before
// its daemons are; CancellationBackoff and CancellationTimeout say how long they
// may take. Timer declares a function that is called again and again for every
// object, by Interval, Sharp and Idle; its argument is a Tick, and it holds nothing.
// Both see the object as it is at the time of asking.
//
// # Admission
//
// OnValidate and OnMutate declare functions that the API server asks before it stores
// an object; their argument is an Admission. A validation rejects the request of a
// user by an error, Reject makes one with a message and a code; a mutation fills the
// patch. The operator needs a server for that: settings.Admission, and WebhookServer and
// its siblings.
//
// # In memory
//
// NewIndex declares what an operator is to know of all objects of a resource, by
// keys: an Index, which is filled before any handler is called, and looked up by
// handlers instead of asking the API server. NewMemo declares a Memo: a value in
// memory for every object, which all handlers of that object share.
//
// # Children and events
//
// Adopt makes other objects the children of the handled one; Label,
// HarmonizeNaming, AdjustNamespace and AppendOwnerReference are its parts. Info,
// Warn, Exception and Event report Kubernetes events. All of them take the
// handled object from the context of the handler. What a handler logs is reported, too,
// by settings.Posting; LogOnly is for what is not to be.
//
// # Operators
//
// Main runs an operator as a program, with a command line. Run runs one inside
// of a program. Add makes one a part of a controller-runtime manager that is
// there already.
//
// OnStartup, OnCleanup, OnProbe and OnLogin declare handlers of the operator as a
// whole; their argument is an Activity. Settings tune it: its scope, its replicas and
// their leader, its peers, its health and metrics, and everything else in package
// settings.
//
// # Packages
//
// The names of this package are aliases where the thing itself belongs to a
// smaller package: object (bodies, views, paths), diff, patch, selector, handler
// (declarations, arguments, errors), index, memo, registry, settings, storage and
// hierarchy, all below this one. The life of an operator is in pkg/operator, the engine
// in pkg/reconcile, what API servers call in pkg/webhook.
package kopf
