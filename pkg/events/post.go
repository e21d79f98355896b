package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/hierarchy"
)

// The types of events. Kubernetes uses only the first two; tools show other types as
// they are.
const (
	TypeNormal  = corev1.EventTypeNormal
	TypeWarning = corev1.EventTypeWarning
	TypeError   = "Error"
	TypeDebug   = "Debug"
)

// ReasonLogging is the reason of events that repeat lines of the log, and ReasonHandlerFailed that of a handler that has
// failed for good.
const (
	ReasonLogging       = "Logging"
	ReasonHandlerFailed = "HandlerFailed"
)

// AboutHandler returns the message of an event about a handler. What follows the id begins with a space.
func AboutHandler(id, rest string) string { return aboutHandler + id + rest }

const aboutHandler = "Handler "

// HandlerIn returns the id of the handler that a message is about, also if the event is combined from several ones, or
// an empty text.
func HandlerIn(message string) string {
	rest, isOne := strings.CutPrefix(strings.TrimPrefix(message, combined), aboutHandler)
	if !isOne {
		return ""
	}
	id, _, _ := strings.Cut(rest, " ")
	return id
}

// Event posts an event about the object, or about each object of a list. It accepts the
// same objects as the package hierarchy. If objs is nil, the event is about the handled
// object of the context. Event does not wait for the event to be posted, and posts
// nothing if it fails. See Recorder.Post for the texts.
//
// It returns an error if the context does not belong to a handler, or if the name or the
// kind of an object is unknown.
//
// Specification: Events, "Handled objects", "Other objects".
func Event(ctx context.Context, objs any, eventType, reason, message string) error {
	return post(ctx, always, objs, eventType, reason, message)
}

// Info calls Event with the type Normal. The event has the level Info: see Options.Level.
func Info(ctx context.Context, objs any, reason, message string) error {
	return post(ctx, slog.LevelInfo, objs, TypeNormal, reason, message)
}

// Warn calls Event with the type Warning. The event has the level Warn.
func Warn(ctx context.Context, objs any, reason, message string) error {
	return post(ctx, slog.LevelWarn, objs, TypeWarning, reason, message)
}

// Exception calls Event with the type Error, and appends the error's text to the message.
// The event has the level Error. If the reason is empty, it is "Error".
func Exception(ctx context.Context, objs any, reason, message string, err error) error {
	if err != nil {
		message = strings.TrimSpace(message + " " + err.Error())
	}
	return post(ctx, slog.LevelError, objs, TypeError, cmp.Or(reason, TypeError), message)
}

// always is the level of events that are posted at any level.
const always = slog.Level(math.MaxInt)

func post(ctx context.Context, level slog.Level, objs any, eventType, reason, message string) error {
	poster, ok := From(ctx)
	if !ok {
		return errors.New("no event is posted: the context does not belong to a handler")
	}
	refs, err := references(ctx, poster, objs)
	if err != nil {
		return fmt.Errorf("no event is posted: %w", err)
	}
	if leveled, ok := poster.(interface{ Enabled(level slog.Level) bool }); ok && !leveled.Enabled(level) {
		return nil
	}
	for _, ref := range refs {
		poster.Post(ref, eventType, reason, message)
	}
	return nil
}

func references(ctx context.Context, poster Poster, objs any) ([]corev1.ObjectReference, error) {
	if objs == nil {
		owner, ok := hierarchy.OwnerFrom(ctx)
		if !ok {
			return nil, errors.New("no object is given, and the context has no handled object")
		}
		objs = owner
	}
	var scheme *runtime.Scheme
	if schemed, ok := poster.(interface{ Scheme() *runtime.Scheme }); ok {
		scheme = schemed.Scheme()
	}
	return hierarchy.ObjectReferences(objs, scheme)
}
