package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// warnings are for the user. Handlers may give them from several goroutines.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) add(message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, message)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// recordOutcome takes note of what has come of a handler, and says so in the log. A
// rejection is what handlers are there for; all else is a fault in them.
func (e *evaluation) recordOutcome(d *handler.Declaration, log logr.Logger, err error) {
	var rejection *handler.AdmissionError
	switch {
	case err == nil:
		log.V(1).Info("The request was admitted.")
		return
	case d.Webhook.IgnoreFailures:
		log.Error(err, "The handler failed; this is ignored.", handler.StackValues(err)...)
		e.warnings.add(fmt.Sprintf("ignored: %s", e.messageForUser(d, err)))
		return
	case errors.As(err, &rejection):
		log.Info("The request was rejected.", append([]any{"reason", err.Error()}, e.rejectionLogValues(rejection)...)...)
	default:
		log.Error(err, "The handler failed, and the request was rejected.", append(e.rejectionLogValues(nil), handler.StackValues(err)...)...)
	}
	e.errors = append(e.errors, &handlerError{err, e.messageForUser(d, err)})
}

// rejectionLogValues is what the log says of a rejection: whose request it was, and how it
// was answered. A code that HTTP has not for errors was a mistake of the handler.
func (e *evaluation) rejectionLogValues(by *handler.AdmissionError) []any {
	code := http.StatusInternalServerError
	if by != nil {
		code = handler.HTTPStatus(by)
	}
	values := []any{"code", code, "user", e.request.User.Username, "dryRun", e.request.DryRun}
	if by != nil && by.Code != 0 && by.Code != code {
		values = append(values, "note", fmt.Sprintf("the handler gave the code %d, which is not one of 400 to 599", by.Code))
	}
	return values
}

// handlerError is the error of a handler, with the text for the user.
type handlerError struct {
	err  error
	text string
}

func (f *handlerError) Error() string { return f.text }

func (f *handlerError) Unwrap() error { return f.err }

// messageForUser is the text for the user. Nobody has written a panic for users.
func (e *evaluation) messageForUser(d *handler.Declaration, err error) string {
	var panicked *handler.PanicError
	if errors.As(err, &panicked) {
		return fmt.Sprintf("the handler %s has panicked; the log of the operator tells why", d.ID)
	}
	return err.Error()
}

// preferredError is the one error that the user gets; nil: there was none.
//
// Specification: Admission control, "Admission errors".
func (e *evaluation) preferredError() error {
	if len(e.errors) == 0 {
		return nil
	}
	return slices.MinFunc(e.errors, func(a, b error) int { return errorPriority(a) - errorPriority(b) })
}

// errorPriority orders errors: what was meant for the user comes first.
func errorPriority(err error) int {
	var rejection *handler.AdmissionError
	var temporary *handler.TemporaryError
	switch {
	case errors.As(err, &rejection):
		return 0
	case handler.IsPermanent(err):
		return 1
	case errors.As(err, &temporary):
		return 2
	default:
		return 3
	}
}
