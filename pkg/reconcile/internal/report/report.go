// Package report says what happens to one object: in the log, and as Kubernetes
// events. What lasts is said once: for each object, or for the operator.
package report

import (
	"log/slog"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/settings"
)

// The types of events.
const (
	Normal  = corev1.EventTypeNormal
	Warning = corev1.EventTypeWarning
)

// Poster posts an event about an object. It must not block.
type Poster interface {
	Post(about corev1.ObjectReference, eventType, reason, message string)
}

// Reporter reports on one object.
type Reporter struct {
	Log     logr.Logger
	Poster  Poster // nil: no events
	Posting settings.Posting
	Object  *Once       // what was reported on the object
	Shared  *SharedOnce // what was reported by the operator
}

// Event posts an event about the object, unless the settings filter out events of
// its level.
func (r Reporter) Event(body *object.Body, eventType, reason, message string) {
	level := slog.LevelError
	if eventType == Normal {
		level = slog.LevelInfo
	}
	if r.Poster != nil && r.Posting.Posts(level) {
		r.Poster.Post(events.Reference(body), eventType, reason, message)
	}
}

// Once remembers what was reported. The zero value is empty, and costs a pointer.
// It is not safe for concurrent use.
type Once map[string]struct{}

// First reports whether the text is new, and remembers it.
func (o *Once) First(text string) bool {
	if o.Has(text) {
		return false
	}
	if *o == nil {
		*o = Once{}
	}
	(*o)[text] = struct{}{}
	return true
}

// Has reports whether the text is known.
func (o *Once) Has(text string) bool {
	_, known := (*o)[text]
	return known
}

// SharedOnce is a Once for concurrent use.
type SharedOnce struct{ known sync.Map }

// First reports whether the text is new, and remembers it.
func (o *SharedOnce) First(text string) bool {
	_, known := o.known.LoadOrStore(text, true)
	return !known
}
