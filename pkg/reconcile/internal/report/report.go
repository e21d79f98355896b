// Package report reports what happens to one object: in the log, and as Kubernetes events. It
// reports lasting conditions once, per object or per operator.
package report

import (
	"cmp"
	"log/slog"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/internal/reportonce"
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
	Poster  Poster // nil disables events
	Posting settings.Posting
	// IDs are the ids under which handlers are reported, by their own ids, if these differ.
	IDs    map[string]string
	Object *reportonce.Set       // reports of the object
	Shared *reportonce.SharedSet // reports of the operator
	// Written collects what to report when what is being prepared is written. Nil reports it at once.
	Written *[]func()
}

// WhenWritten calls a report when what is being prepared is written.
func (r Reporter) WhenWritten(report func()) {
	if r.Written == nil {
		report()
		return
	}
	*r.Written = append(*r.Written, report)
}

// ReportedID returns the id under which a handler is reported.
func (r Reporter) ReportedID(id string) string { return cmp.Or(r.IDs[id], id) }

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
