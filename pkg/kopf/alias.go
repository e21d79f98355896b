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
	// Change is the arguments of a handler of changes. Its methods are in
	// package handler.
	Change = handler.Change
	// ChangeFunc is a handler of changes.
	ChangeFunc = handler.ChangeFunc
	// WatchEvent is the arguments of a handler of watch events. Its methods are in
	// package handler.
	WatchEvent = handler.Event
	// EventFunc is a handler of watch events.
	EventFunc = handler.EventFunc
	// Task is the arguments of a daemon. Its methods are in package handler.
	Task = handler.Task
	// DaemonFunc is a daemon.
	DaemonFunc = handler.DaemonFunc
	// StopReason is why a daemon has to stop. See package handler.
	StopReason = handler.StopReason
	// Tick is the arguments of a timer. Its methods are in package handler.
	Tick = handler.Tick
	// TimerFunc is a timer.
	TimerFunc = handler.TimerFunc
	// Indexed is the arguments of an indexing function. Its methods are in package
	// handler.
	Indexed = handler.Indexed
	// Arguments is what the arguments of all kinds of handlers have in common,
	// for filters. It is in package handler.
	Arguments = handler.Arguments
	// Matcher decides over one value of a label, an annotation or a field. It is
	// in package handler.
	Matcher = handler.Matcher

	// Body is an immutable version of an object; View a read-only mapping in it;
	// FieldValue one value. Their methods are in package object.
	Body = object.Body
	// View is a read-only mapping inside of a body.
	View = object.View
	// FieldValue is the value of a field, which may be absent or unknown.
	FieldValue = object.Value
	// Diff is a list of changes; DiffItem one of them. See package diff.
	Diff = diff.Diff
	// DiffItem is one added, changed or removed field.
	DiffItem = diff.Item
	// Patch collects the changes that a handler makes to its object. Its methods
	// are in package patch.
	Patch = patch.Patch

	// Selector tells which resources are meant. See package selector.
	Selector = selector.Selector
	// ResourceFields are the parts of a selector by their meaning.
	ResourceFields = selector.Fields
	// ServedResource is a resource as the cluster serves it.
	ServedResource = selector.Resource

	// Settings configure an operator. See package settings for every field.
	Settings = settings.Settings

	// Reason is what has happened to an object. See package cause.
	Reason = cause.Reason
	// ErrorsMode is what becomes of regular errors.
	ErrorsMode = handler.ErrorsMode

	// TemporaryError asks for another attempt; see Temporary.
	TemporaryError = handler.TemporaryError
	// PermanentError says that more attempts make no sense; see Permanent.
	PermanentError = handler.PermanentError
	// HandlerTimeoutError fails a handler whose timeout is over.
	HandlerTimeoutError = handler.TimeoutError
	// HandlerRetriesError fails a handler that has used up its attempts.
	HandlerRetriesError = handler.RetriesError

	// Lifecycle chooses the handlers of one pass over an object, for
	// Settings.Execution.Lifecycle. See package handler.
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

// What becomes of errors that are neither temporary nor permanent.
const (
	ErrorsTemporary = handler.ErrorsTemporary
	ErrorsPermanent = handler.ErrorsPermanent
	ErrorsIgnored   = handler.ErrorsIgnored
)

// Why a daemon has to stop, as Task.StopReason has it.
const (
	StopDeleted   = handler.StopDeleted
	StopMismatch  = handler.StopMismatch
	StopPaused    = handler.StopPaused
	StopExiting   = handler.StopExiting
	StopSignalled = handler.StopSignalled
	StopCancelled = handler.StopCancelled
	StopAbandoned = handler.StopAbandoned
)

// What has happened to a field of a diff.
const (
	DiffAdd    = diff.Add
	DiffChange = diff.Change
	DiffRemove = diff.Remove
)

// Everything, in the place of a resource's name, selects all of them.
const Everything = selector.Everything

// Resource selects resources in the notations of kubectl: selector.New.
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

// ResourceBy selects resources by one particular name or a category: selector.By.
func ResourceBy(fields ResourceFields) Selector { return selector.By(fields) }

// ResourceFunc selects the resources that the callback accepts: selector.Func.
func ResourceFunc(test func(ServedResource) bool) Selector { return selector.Func(test) }

// Temporary makes an error that asks for another attempt after the delay; 0: at
// once.
//
// Specification: Error handling, "Temporary errors".
func Temporary(err error, delay time.Duration) error { return handler.Temporary(err, delay) }

// Permanent makes an error after which the handler is not called again for this
// change.
//
// Specification: Error handling, "Permanent errors".
func Permanent(err error) error { return handler.Permanent(err) }
