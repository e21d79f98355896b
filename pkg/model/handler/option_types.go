package handler

// The option types of the kinds of handlers. Each option implements only the types of
// the kinds that it applies to.
type (
	// CreateOption is an option of OnCreate.
	CreateOption interface{ create(*Declaration) }
	// UpdateOption is an option of OnUpdate and OnField.
	UpdateOption interface{ update(*Declaration) }
	// DeleteOption is an option of OnDelete.
	DeleteOption interface{ delete(*Declaration) }
	// ResumeOption is an option of OnResume.
	ResumeOption interface{ resume(*Declaration) }
	// EventOption is an option of OnEvent.
	EventOption interface{ event(*Declaration) }
	// DaemonOption is an option of Daemon.
	DaemonOption interface{ daemon(*Declaration) }
	// TimerOption is an option of Timer.
	TimerOption interface{ timer(*Declaration) }
	// IndexOption is an option of NewIndex.
	IndexOption interface{ index(*Declaration) }
	// ChildOption is an option of OnChild.
	ChildOption interface{ child(*Declaration) }
	// ActivityOption is an option of OnStartup, OnCleanup, OnLogin, and OnProbe.
	ActivityOption interface{ operator(*Declaration) }
	// AdmissionOption is an option of OnValidate and OnMutate.
	AdmissionOption interface{ admission(*Declaration) }
	// EnsureOption is an option of Ensure.
	EnsureOption interface{ ensure(*Declaration) }
	// DriftOption is an option of OnDrift.
	DriftOption interface{ drift(*Declaration) }
	// SubhandlerOption is an option of Change.Subhandler.
	SubhandlerOption interface{ subhandler(*Declaration) }
)

// HandlerOption is an option of every kind of handler.
//
//nolint:revive // it is kopf.HandlerOption for users
type HandlerOption func(*Declaration)

func (o HandlerOption) create(d *Declaration)     { o(d) }
func (o HandlerOption) update(d *Declaration)     { o(d) }
func (o HandlerOption) delete(d *Declaration)     { o(d) }
func (o HandlerOption) resume(d *Declaration)     { o(d) }
func (o HandlerOption) ensure(d *Declaration)     { o(d) }
func (o HandlerOption) event(d *Declaration)      { o(d) }
func (o HandlerOption) subhandler(d *Declaration) { o(d) }
func (o HandlerOption) daemon(d *Declaration)     { o(d) }
func (o HandlerOption) timer(d *Declaration)      { o(d) }
func (o HandlerOption) child(d *Declaration)      { o(d) }
func (o HandlerOption) index(d *Declaration)      { o(d) }
func (o HandlerOption) admission(d *Declaration)  { o(d) }
func (o HandlerOption) drift(d *Declaration)      { o(d) }
func (o HandlerOption) operator(d *Declaration)   { o(d) }

// ObjectOption is an option of every kind of object handler.
type ObjectOption func(*Declaration)

func (o ObjectOption) create(d *Declaration)     { o(d) }
func (o ObjectOption) update(d *Declaration)     { o(d) }
func (o ObjectOption) delete(d *Declaration)     { o(d) }
func (o ObjectOption) resume(d *Declaration)     { o(d) }
func (o ObjectOption) ensure(d *Declaration)     { o(d) }
func (o ObjectOption) event(d *Declaration)      { o(d) }
func (o ObjectOption) subhandler(d *Declaration) { o(d) }
func (o ObjectOption) daemon(d *Declaration)     { o(d) }
func (o ObjectOption) timer(d *Declaration)      { o(d) }
func (o ObjectOption) child(d *Declaration)      { o(d) }
func (o ObjectOption) index(d *Declaration)      { o(d) }
func (o ObjectOption) drift(d *Declaration)      { o(d) }
func (o ObjectOption) admission(d *Declaration)  { o(d) }

// RetryOption is an option of the kinds whose handlers are retried.
type RetryOption func(*Declaration)

func (o RetryOption) create(d *Declaration)     { o(d) }
func (o RetryOption) update(d *Declaration)     { o(d) }
func (o RetryOption) delete(d *Declaration)     { o(d) }
func (o RetryOption) resume(d *Declaration)     { o(d) }
func (o RetryOption) ensure(d *Declaration)     { o(d) }
func (o RetryOption) subhandler(d *Declaration) { o(d) }
func (o RetryOption) daemon(d *Declaration)     { o(d) }
func (o RetryOption) timer(d *Declaration)      { o(d) }
func (o RetryOption) child(d *Declaration)      { o(d) }
func (o RetryOption) index(d *Declaration)      { o(d) }
func (o RetryOption) operator(d *Declaration)   { o(d) }

// LimitOption is an option of the kinds whose handlers are called for a change, and of daemons
// and timers.
type LimitOption func(*Declaration)

func (o LimitOption) create(d *Declaration)     { o(d) }
func (o LimitOption) update(d *Declaration)     { o(d) }
func (o LimitOption) delete(d *Declaration)     { o(d) }
func (o LimitOption) resume(d *Declaration)     { o(d) }
func (o LimitOption) ensure(d *Declaration)     { o(d) }
func (o LimitOption) subhandler(d *Declaration) { o(d) }
func (o LimitOption) daemon(d *Declaration)     { o(d) }
func (o LimitOption) timer(d *Declaration)      { o(d) }
func (o LimitOption) child(d *Declaration)      { o(d) }

// FieldOption is an option of the kinds that can be restricted to a field.
type FieldOption func(*Declaration)

func (o FieldOption) create(d *Declaration)     { o(d) }
func (o FieldOption) update(d *Declaration)     { o(d) }
func (o FieldOption) delete(d *Declaration)     { o(d) }
func (o FieldOption) resume(d *Declaration)     { o(d) }
func (o FieldOption) event(d *Declaration)      { o(d) }
func (o FieldOption) subhandler(d *Declaration) { o(d) }
func (o FieldOption) daemon(d *Declaration)     { o(d) }
func (o FieldOption) timer(d *Declaration)      { o(d) }
func (o FieldOption) index(d *Declaration)      { o(d) }
func (o FieldOption) admission(d *Declaration)  { o(d) }

// TransitionOption is an option of update handlers, field handlers, and sub-handlers.
type TransitionOption func(*Declaration)

func (o TransitionOption) update(d *Declaration)     { o(d) }
func (o TransitionOption) subhandler(d *Declaration) { o(d) }

// RevisionOption is an option of the kinds that are called for changes, except deletions.
type RevisionOption func(*Declaration)

func (o RevisionOption) create(d *Declaration) { o(d) }
func (o RevisionOption) update(d *Declaration) { o(d) }

// DeletionOption is an option of deletion handlers.
type DeletionOption func(*Declaration)

func (o DeletionOption) delete(d *Declaration) { o(d) }

// ResumingOption is an option of resume handlers and of handlers of children.
type ResumingOption func(*Declaration)

func (o ResumingOption) resume(d *Declaration) { o(d) }
func (o ResumingOption) child(d *Declaration)  { o(d) }

// FamilyOption is an option of handlers of children.
type FamilyOption func(*Declaration)

func (o FamilyOption) child(d *Declaration) { o(d) }

// BackgroundOption is an option of daemons and timers.
type BackgroundOption func(*Declaration)

func (o BackgroundOption) daemon(d *Declaration) { o(d) }
func (o BackgroundOption) timer(d *Declaration)  { o(d) }

// StoppingOption is an option of daemons.
type StoppingOption func(*Declaration)

func (o StoppingOption) daemon(d *Declaration) { o(d) }

// ScheduleOption is an option of timers.
type ScheduleOption func(*Declaration)

func (o ScheduleOption) timer(d *Declaration) { o(d) }

// ConvergenceOption is an option of Ensure alone.
type ConvergenceOption func(*Declaration)

func (o ConvergenceOption) ensure(d *Declaration) { o(d) }

// DriftingOption is an option of OnDrift alone.
type DriftingOption func(*Declaration)

func (o DriftingOption) drift(d *Declaration) { o(d) }
