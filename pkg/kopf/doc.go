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
//	go doc github.com/kopf-go/kopf/pkg/model/handler.Change
//
// # Handlers of changes
//
//	OnCreate, OnUpdate, OnDelete, OnResume   what happened to an object
//	OnField                                  a field changed
//	OnEvent                                  every watch event, without retries
//	ChangeFunc, Change                       the function, and its arguments
//	EventFunc, WatchEvent                    the same for OnEvent
//	Reason, ReasonCreate, ReasonUpdate,
//	ReasonDelete, ReasonResume               why the handler is called
//	Conditions                               the status says what the handlers have come to
//
// A handler reads the object from its arguments, changes it with Change.Patch, stores a
// result in the status with Change.SetResult, and divides its work with Change.Subhandler.
//
// The functions declare handlers in DefaultRegistry. NewRegistry returns a Registry of
// your own, whose methods have the same names.
//
// # Children
//
//	Ensure, ChildrenFunc                     the children that an object should have
//	AllowEmpty, AdoptExisting, Prune,
//	Recreate, WaitReady, WatchIndex          its options
//	InWave, KeepAnnotation                   about one child
//	ChildError, NotOursError, EmptyError     why a child is not what it should be
//	OnDrift, DriftFunc                       what others change in such a child
//	Drift, DriftOf, DriftedField, ChildKey   the arguments of the function
//	Resolution, Restore, Accept,
//	AcceptFields                             its answer
//	Adopt, AppendOwner                       for children that your handlers create themselves
//	OnChild, OnChildOf                       a child of an object was created, changed, or deleted
//	ChildFunc, ChildChange                   the function, and its arguments
//	ChildChangeOf, FamilyChange              the arguments for Go types
//	ChildLabel                               children by a label instead of their owner references
//
// # Resources
//
//	Resource, Everything                     by name, as for kubectl
//	ResourceBy, ResourceFields               by one particular name, or by category
//	ResourceFunc, ServedResource             by a function
//	Selector                                 the result of them
//	Needs                                    what handlers do with a client, for the roles
//
// # Handlers of Go types
//
//	For, Typed                               declare handlers of a Go type
//	ChangeOf, EventOf, TaskOf, TickOf,
//	IndexedOf, AdmissionOf                   their arguments
//	WhenObject                               a filter that sees the Go object
//	MisfitError                              an object does not fit the Go type
//	OnMisfit, MisfitMode, CallUntyped,
//	Release                                  what that means for a deletion
//
// # Daemons and timers
//
//	Daemon, DaemonFunc, Task                 runs as long as the object exists and matches
//	Timer, TimerFunc, Tick                   called for the object on a schedule
//	StopReason, StopDeleted, StopMismatch, StopPaused, StopExiting,
//	StopSignaled, StopCanceled, StopAbandoned,
//	StopMisfit, StopLeadershipLost           why a daemon must stop
//
// # Admission
//
//	OnValidate, OnMutate                     called before the API server stores an object
//	AdmissionFunc, Admission                 the function, and its arguments
//	Reject, AdmissionError                   reject the request
//	WebhookServer, MountedServer             servers for Settings.Admission.Server
//	AdmissionServer, AdmissionServerFunc,
//	AdmissionEndpoint                        servers of your own
//
// # Operator handlers
//
//	OnStartup, Startup, OnCleanup            when the operator starts and ends
//	OnProbe                                  health
//	OnLogin, Connection                      how to connect to the cluster
//	Activity                                 their arguments
//
// # Options
//
// The compiler knows which options fit which handlers:
//
//	ID, Param                                all
//	Labels, Annotations, When, WhenObject    handlers of objects
//	Field, Value                             handlers of objects; OnField has its field
//	ValueBefore, ValueAfter                  OnUpdate, OnField, sub-handlers
//	Errors, Retries, Timeout, Backoff,
//	ExponentialBackoff                       all but OnEvent, OnValidate, OnMutate
//	Limit                                    OnCreate, OnUpdate, OnField, OnDelete,
//	                                         OnResume, sub-handlers, Daemon, Timer, OnChild
//	Revision, Baseline                       OnCreate, OnUpdate, OnField
//	Rollout, RolloutStep, First, Then,
//	ThenPercent                              the same, with a Revision
//	Optional, HoldOnFailure                  OnDelete
//	Deleted                                  OnResume, OnChild
//	ChildLabel                               OnChild
//	EnsuredBy                                OnDrift
//	InitialDelay, InitialDelayFunc           Daemon, Timer
//	CancellationBackoff, CancellationTimeout,
//	CancellationPolling                      Daemon
//	Interval, Sharp, Idle                    Timer
//	Operations, Subresource, SideEffects,
//	IgnoreFailures, Persistent               OnValidate, OnMutate
//
// Filters of labels, annotations, and fields:
//
//	Filters, Matcher, FieldValue             what to compare with what
//	Equal, Present, Absent, MatchFunc        matchers
//	All, Any, None, Not, Condition           combine matchers, or predicates of When
//	Arguments                                what matchers and predicates can see
//
// The types of options, for functions of your own that return options:
//
//	CreateOption, UpdateOption, DeleteOption, ResumeOption, EventOption, DaemonOption,
//	TimerOption, IndexOption, ActivityOption, AdmissionOption, SubhandlerOption,
//	EnsureOption, ChildOption, DriftOption   options of one kind of handler
//	HandlerOption, ObjectOption, FieldOption, TransitionOption, RetryOption, LimitOption,
//	RevisionOption, DeletionOption, ResumingOption, BackgroundOption, StoppingOption, ScheduleOption,
//	ReviewOption                             options of several kinds of handlers
//	ConvergenceOption, FamilyOption,
//	DriftingOption                           options of Ensure, of OnChild, and of OnDrift alone
//
// # Errors
//
//	Temporary, TemporaryError                try again after a delay
//	Permanent, PermanentError                give up
//	ErrorsMode, ErrorsTemporary, ErrorsPermanent, ErrorsIgnored
//	                                         how to treat any other error
//	HandlerTimeoutError, HandlerRetriesError a limit is exceeded
//
// # Objects
//
//	Body, View                               read an object
//	Diff, DiffItem, DiffAdd, DiffChange, DiffRemove
//	                                         what changed
//	Patch, Writable                          change the object
//	ClientFrom                               the client of the operator
//
// # Memory
//
//	NewIndex, NewIndexOf, Index, AnyIndex,
//	Indexed                                  values of all objects, by keys
//	FillIndex, FillIndexOf                   more values, such as of other resources
//	NewMemo, Memo                            a value for every object
//
// # Child objects
//
//	Adopt, AdoptOption                       all of the following at once
//	Label, Nested, WithLabels, LabelOption
//	HarmonizeNaming, Strict, WithName, NamingOption
//	AdjustNamespace, WithNamespace, NamespaceOption
//	AppendOwnerReference, ReferenceOption
//	RemoveOwnerReference, RemovalOption
//	OwnedBy, OwnerOption, Forced, ForcedOption
//	NotController, NotBlocking, OwnershipOption
//	AppendOwner                              the handled object is the child
//	BuildOwnerReference, BuildObjectReference
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
//	Run, Options                             an operator inside of a program
//	Add                                      a part of a controller-runtime manager
//	ObservePermissions, PermissionObserver   which permissions that manager uses and lacks
//	NewOperator, Operator                    an operator whose state you can ask for
//	OperatorState, WatchState, QueueState    that state
//	Settings                                 the configuration, see package settings
//	Lifecycle, Due                           which handlers run in one pass, see package
//	                                         lifecycles
//
// # Terms
//
// The essence of an object is all of it but the status, the system metadata, and the
// operator's own annotations. "Specification" in a comment names a chapter of the
// documentation of Kopf, https://kopf.readthedocs.io, whose behavior the API follows.
package kopf
