// Package kopf is a framework for Kubernetes operators that are built from handlers:
// functions that are called when something happens to an object.
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
// The operator detects what happened to an object and what changed, calls the handlers,
// and retries them. It stores the progress of the handlers on the object, and keeps the
// object until its deletion handlers have finished. A restart loses nothing, and does not
// repeat what was recorded.
//
// This page groups the API by purpose. To show one part of it, run, for example:
//
//	go doc github.com/kopf-go/kopf/pkg/kopf OnCreate
//	go doc github.com/kopf-go/kopf/pkg/kopf Change
//
// # Handlers of changes
//
//	OnCreate, OnUpdate, OnDelete, OnResume   what happened to an object
//	OnField                                  a field changed
//	OnEvent                                  every watch event, without retries
//	Change                                   the arguments of a handler
//	WatchEvent                               the same for OnEvent
//	Reason, ReasonCreate, ReasonUpdate,
//	ReasonDelete, ReasonResume               why the handler is called
//	Conditions                               the status has the outcome of the handlers
//
// A handler reads the object from its arguments, changes it with Change.Patch, stores a
// result in the status with Change.SetResult, and divides its work with Change.Subhandler.
//
// The functions declare handlers in DefaultRegistry. NewRegistry returns a Registry of
// your own, whose methods have the same names.
//
// # Children
//
//	Ensure                                   the children that an object should have
//	AllowEmpty, AdoptExisting, Prune,
//	Recreate, WaitReady, WatchIndex          its options
//	InWave, KeepAnnotation                   about one child
//	OnDrift, Drift                           what others change in such a child
//	Resolution, RestoreDrift, AcceptDrift,
//	AcceptFields                             the answer of the function
//	OnChild, OnChildOf, ChildChange          a child of an object was created, changed, or deleted
//	ChildLabel                               children by a label instead of their owner references
//
// Package pkg/model/convergence has the errors about one child, and the fields of a drift. For
// children that your handlers create themselves, package pkg/hierarchy has Adopt, Label,
// AppendOwnerReference, and others.
//
// # Resources
//
//	Resource, Everything                     by name, as for kubectl
//	Selector                                 the result, also of By and Func in pkg/model/selector
//	Needs                                    what handlers do with a client, for the roles
//
// # Handlers of Go types
//
//	For, Typed                               declare handlers that get the object as a Go type
//	Update                                   change the object by a function
//	WhenObject                               a filter that sees the Go object
//	MisfitError                              an object does not fit the Go type
//	CallUntyped, ReleaseMisfits              what that means for a deletion
//
// # Daemons and timers
//
//	Daemon, Task                             runs as long as the object exists and matches
//	WakeOn, WatchChildren, WatchChildrenOf   what a daemon looks at: Task.WaitForChange
//	WriteError, ErrGone                      of Task.Write
//	Timer, Tick                              called for the object on a schedule
//	CheckSchedule                            is a text a schedule?
//
// Package pkg/model/stop has the reasons why a daemon must stop.
//
// # Admission
//
//	OnValidate, OnMutate, Admission          called before the API server stores an object
//	Reject, AdmissionError                   reject the request
//	OnConvert, OnConvertOf, Conversion       converts objects between the versions of a resource
//	OnConvertHub                             the same for the types of a kubebuilder project
//
// Package pkg/webhook/servers has servers for Settings.Admission.Server.
//
// # Operator handlers
//
//	OnStartup, Startup, OnCleanup            when the operator starts and ends
//	OnProbe                                  health
//	OnLogin                                  how to connect to the cluster
//	Activity                                 their arguments
//
// # Options
//
// The compiler knows the families of handlers: ChangeOption, BackgroundOption, AdmissionOption,
// ChildOption. An Option fits several of them. An option that does not fit the kind of a handler is a
// mistake in the declaration.
//
//	ID, Param, DeclaredAt                    all
//	Labels, Annotations, When, WhenObject    handlers of objects
//	Field, Value                             handlers of objects; OnField has its field
//	ValueBefore, ValueAfter                  OnUpdate, OnField, sub-handlers
//	Errors, Retries, Timeout, Backoff,
//	ExponentialBackoff                       all but OnEvent, OnDrift, OnValidate, OnMutate
//	Limit                                    OnCreate, OnUpdate, OnField, OnDelete, OnResume,
//	                                         sub-handlers, Daemon, Timer, OnChild, Ensure
//	After, AfterFailure                      OnCreate, OnUpdate, OnField, OnDelete, OnResume,
//	                                         sub-handlers
//	Revision, Baseline, Rollout              OnCreate, OnUpdate, OnField
//	Optional, HoldOnFailure                  OnDelete
//	Deleted                                  OnResume, OnChild
//	ChildLabel                               OnChild, Daemon
//	WakeOn, WatchChildren, WatchChildrenOf   Daemon
//	EnsuredBy                                OnDrift
//	InitialDelay, InitialDelayFunc           Daemon, Timer
//	CancellationBackoff, CancellationTimeout,
//	CancellationPolling                      Daemon
//	Idle                                     Timer, OnCreate, OnUpdate, OnField, Ensure
//	Interval, IntervalFunc, Sharp,
//	Schedule, ScheduleFunc                   Timer
//	TimeZone, CatchUp                        ScheduleOption: of Schedule and ScheduleFunc, not of Timer
//	Operations, Subresource, SideEffects,
//	IgnoreFailures, Persistent               OnValidate, OnMutate
//
// Filters of labels, annotations, and fields:
//
//	Matcher                                  what to compare with what
//	Equal, Present, Absent, MatchFunc        matchers
//	All, Any, None, Not                      combine matchers, or predicates of When
//	Arguments                                what matchers and predicates can see
//
// # Errors
//
//	Temporary, TemporaryError                try again after a delay
//	Permanent, PermanentError                give up
//	ErrorsMode, ErrorsTemporary, ErrorsPermanent, ErrorsIgnored
//	                                         how to treat any other error
//	HandlerTimeoutError, HandlerRetriesError a limit is exceeded
//
// # Objects and memory
//
//	ClientFrom                               the client of the operator
//	NewIndex, NewIndexOf, Index, AnyIndex,
//	Indexed                                  values of all objects, by keys
//	FillIndex, FillIndexOf                   more values, such as of other resources
//
// Packages pkg/model/object, diff, and patch have what the methods of arguments return, and package
// pkg/model/memo has values in memory for every object. The steps of a Rollout are in
// pkg/model/rollout.
//
// # Kubernetes events
//
//	Event, Info, Warn, Exception             about the handled object
//	EventFor                                 about other objects
//	LogOnly                                  a logger whose lines do not become events
//
// # Operators
//
//	Main                                     a program with a command line
//	Commands                                 explain, plan, and others for another command line
//	ExitCode                                 the exit code of that command line
//	Configure                                settings that commands know, too
//	Run, Options                             an operator inside of a program; Options.Tracer has its spans
//	Add                                      a part of a controller-runtime manager
//	ObservePermissions, PermissionObserver   which permissions that manager uses and lacks
//	NewOperator, Operator                    an operator whose state you can ask for
//	OperatorState, WatchState, QueueState    that state
//	ShardsState                              that of the shards, if there are any
//	Settings                                 the configuration, see package settings
//
// # Terms
//
// The essence of an object is all of it but the status, the system metadata, and the
// operator's own annotations. "Specification" in a comment names a chapter of the
// documentation of Kopf, https://kopf.readthedocs.io, whose behavior the API follows.
package kopf
