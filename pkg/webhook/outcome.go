package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/internal/handler"
)

// warnings collects the warnings for the user. It is safe for concurrent use.
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

// recordOutcome records and logs the outcome of a handler. A rejection is what
// handlers are for; any other error is a fault of the handler.
func (e *evaluation) recordOutcome(d *handler.Declaration, log logr.Logger, err error) {
	var rejection *handler.AdmissionError
	switch {
	case err == nil:
		log.V(1).Info("The request was admitted.")
		return
	case errors.As(err, &rejection):
		log.Info("The request was rejected.", append([]any{"reason", err.Error()}, e.rejectionLogValues(rejection)...)...)
	default:
		log.Error(err, "The handler failed, and the request was rejected.", append(e.rejectionLogValues(nil), handler.StackValues(err)...)...)
	}
	text := err.Error()
	var panicked *handler.PanicError
	if errors.As(err, &panicked) { // its text is not written for users
		text = fmt.Sprintf("the handler %s panicked; see the log of the operator", d.ID)
	}
	e.errors = append(e.errors, &handlerError{err, text})
}

// answerMisfit returns the answer of a handler whose Go type the object does not fit. A
// validation rejects the request, unless it changes only metadata of a stored object: the
// operator must be able to store its records, and people their requests. A mutation passes
// the object on, because the API server checks the schema after the mutations.
func (e *evaluation) answerMisfit(d *handler.Declaration, log logr.Logger, misfit *handler.MisfitError) error {
	if d.Kind == handler.OnMutate || e.review.ChangesOnlyMetadata() {
		log.Info("The handler was not called: the object does not fit its Go type. The request passes.",
			"type", misfit.Type, "field", misfit.Field, "problem", misfit.Err.Error())
		return nil
	}
	return handler.Reject(misfit.Error(), http.StatusUnprocessableEntity)
}

// rejectionLogValues returns what the log says about a rejection: the user and the
// code, with a note if the handler gave a code that is not an error in HTTP.
func (e *evaluation) rejectionLogValues(rejection *handler.AdmissionError) []any {
	code := http.StatusInternalServerError
	if rejection != nil {
		code = handler.HTTPStatus(rejection)
	}
	values := []any{"code", code, "user", e.request.User.Username, "dryRun", e.request.DryRun}
	if rejection != nil && rejection.Code != 0 && rejection.Code != code {
		values = append(values, "note", fmt.Sprintf("the handler gave the code %d, which is not one of 400 to 599", rejection.Code))
	}
	return values
}

// handlerError is the error of a handler, with the text for the user.
type handlerError struct {
	err  error
	text string
}

func (e *handlerError) Error() string { return e.text }

func (e *handlerError) Unwrap() error { return e.err }

// errorPriority orders errors: those that are written for the user come first.
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
