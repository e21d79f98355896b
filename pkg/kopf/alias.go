package kopf

import (
	"time"

	"github.com/kopf-go/kopf/pkg/lifecycles"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

type (
	// Change has the arguments of a ChangeFunc: the object (Body, Spec, Status, Meta, Name,
	// Namespace, UID, Labels, Annotations, Resource), what happened (Reason, Old, New, Diff,
	// OldEssence), the attempt (Retry, Started, Runtime), what the handler writes (Patch,
	// SetResult, Result, SetCondition), its parts (Subhandler, Execute), its means (Client, Logger, Memo,
	// Param), and why the object does not fit the Go type (Misfit). The methods are those of [handler.Change]:
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/handler.Change
	Change = handler.Change
	// ChangeFunc is a handler of changes. It can be called again after a crash, so it must
	// be idempotent.
	ChangeFunc = handler.ChangeFunc
	// WatchEvent has the arguments of an EventFunc. Its methods are those of
	// [handler.Event]: those of Change that make sense for an event, and Type.
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/handler.Event
	WatchEvent = handler.Event
	// EventFunc is a handler of watch events.
	EventFunc = handler.EventFunc
	// Task has the arguments of a DaemonFunc. The object is live: each method returns the
	// current state. Its methods are those of [handler.Task]: Wait, Stopped, and StopReason
	// tell when to return, and the others are as for Change.
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/handler.Task
	Task = handler.Task
	// DaemonFunc is a daemon.
	DaemonFunc = handler.DaemonFunc
	// StopReason is the set of reasons why a daemon must stop. Check it with
	// [handler.StopReason.Has].
	StopReason = handler.StopReason
	// Tick has the arguments of a TimerFunc. The object is live: each method returns the
	// current state. Its methods are those of [handler.Tick], as for Change.
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/handler.Tick
	Tick = handler.Tick
	// TimerFunc is a timer.
	TimerFunc = handler.TimerFunc
	// Indexed has the arguments of an indexing function. Its methods are those of
	// [handler.Indexed].
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/handler.Indexed
	Indexed = handler.Indexed
	// Arguments is what the arguments of all handlers of objects have in common. Filters get
	// it. See [handler.Arguments].
	Arguments = handler.Arguments
	// Matcher decides about one value of a label, an annotation, or a field: see Equal,
	// Present, Absent, and MatchFunc.
	Matcher = handler.Matcher

	// Body is an immutable version of an object. Its methods are those of [object.Body].
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/object.Body
	Body = object.Body
	// View is a read-only mapping inside of a body. Its methods are those of [object.View]:
	// String, Int64, Bool, Strings, View, Decode, and others.
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/object.View
	View = object.View
	// FieldValue is the value of a field, which can be absent or unknown. Its methods are
	// those of [object.Value]: Exists, Text, Int64, Bool, Float64, Strings, and others.
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/object.Value
	FieldValue = object.Value
	// Diff is a list of changes. Its methods are those of [diff.Diff].
	Diff = diff.Diff
	// DiffItem is one field that was added, changed, or removed.
	DiffItem = diff.Item
	// Patch collects the changes that a handler makes to its object. Its methods are those
	// of [patch.Patch]: Set, Remove, Merge, Apply, and others.
	//
	//	go doc github.com/kopf-go/kopf/pkg/model/patch.Patch
	Patch = patch.Patch

	// Selector selects resources. Resource, ResourceBy, and ResourceFunc return it.
	Selector = selector.Selector
	// ResourceFields are the fields of a resource by which ResourceBy selects.
	ResourceFields = selector.Fields
	// ServedResource is a resource as the cluster serves it.
	ServedResource = selector.Resource

	// Settings configure an operator. Its groups and fields are in package settings.
	//
	//	go doc github.com/kopf-go/kopf/pkg/settings.Settings
	Settings = settings.Settings

	// Reason is what happened to an object.
	Reason = cause.Reason
	// ErrorsMode is how to treat errors that are neither temporary nor permanent.
	ErrorsMode = handler.ErrorsMode

	// TemporaryError asks for another attempt; see Temporary.
	TemporaryError = handler.TemporaryError
	// PermanentError ends the attempts; see Permanent.
	PermanentError = handler.PermanentError
	// HandlerTimeoutError fails a handler whose timeout has expired.
	HandlerTimeoutError = handler.TimeoutError
	// HandlerRetriesError fails a handler that has used up its attempts.
	HandlerRetriesError = handler.RetriesError

	// Lifecycle chooses the handlers of one pass over an object, for
	// Settings.Execution.Lifecycle. Package lifecycles has some to choose from.
	Lifecycle = lifecycles.Lifecycle
	// Due is a handler that a lifecycle can choose.
	Due = lifecycles.Due
)

// The reasons why a handler is called.
const (
	ReasonCreate = cause.Create
	ReasonUpdate = cause.Update
	ReasonDelete = cause.Delete
	ReasonResume = cause.Resume
)

// How to treat errors that are neither temporary nor permanent: try again after the
// backoff, give up, or log the error and continue as if the handler had succeeded.
const (
	ErrorsTemporary = handler.ErrorsTemporary
	ErrorsPermanent = handler.ErrorsPermanent
	ErrorsIgnored   = handler.ErrorsIgnored
)

// The reasons why a daemon must stop, as Task.StopReason returns them, and the stages of
// its termination.
const (
	StopDeleted        = handler.StopDeleted
	StopMismatch       = handler.StopMismatch
	StopPaused         = handler.StopPaused
	StopExiting        = handler.StopExiting
	StopSignaled       = handler.StopSignaled
	StopCanceled       = handler.StopCanceled
	StopAbandoned      = handler.StopAbandoned
	StopMisfit         = handler.StopMisfit
	StopLeadershipLost = handler.StopLeadershipLost
)

// MisfitMode is what happens when a mandatory deletion handler does not fit an object that
// was handled before; see OnMisfit.
type MisfitMode = handler.MisfitMode

// MisfitError means that an object does not fit the Go type of a handler.
type MisfitError = handler.MisfitError

// What OnMisfit can set: call the deletion handler without the Go object, or release the
// object and skip the handler.
const (
	CallUntyped = handler.CallUntyped
	Release     = handler.Release
)

// What happened to a field in a diff.
const (
	DiffAdd    = diff.Add
	DiffChange = diff.Change
	DiffRemove = diff.Remove
)

// Everything selects all resources, in place of the name of a resource.
const Everything = selector.Everything

// Resource selects resources by the notations of kubectl.
//
//	kopf.Resource("kopfexamples")
//	kopf.Resource("kopf.dev", "v1", "kopfexamples")
//	kopf.Resource("kopf.dev/v1", "kopfexamples")
//	kopf.Resource("kopfexamples.kopf.dev")
//	kopf.Resource("v1", "pods")
//	kopf.Resource("kopf.dev", kopf.Everything)
//
// Specification: Resource specification.
func Resource(parts ...string) Selector { return selector.New(parts...) }

// ResourceBy selects resources by one particular name, or by a category.
func ResourceBy(fields ResourceFields) Selector { return selector.By(fields) }

// ResourceFunc selects the resources for which the function returns true.
func ResourceFunc(test func(ServedResource) bool) Selector { return selector.Func(test) }

// Temporary returns an error that asks for another attempt after the delay. Without a
// delay, the next attempt follows at once.
//
// Specification: Error handling, "Temporary errors".
func Temporary(err error, delay time.Duration) error { return handler.Temporary(err, delay) }

// Permanent returns an error after which the handler is not called again for this change.
//
// Specification: Error handling, "Permanent errors".
func Permanent(err error) error { return handler.Permanent(err) }
