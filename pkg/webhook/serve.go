package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
)

var _ http.Handler = (*webhook)(nil)

// httpError is the reason why a request gets no review, with a status of HTTP.
type httpError struct {
	status int
	err    error
}

func (e *httpError) Error() string { return e.err.Error() }

func (e *httpError) Unwrap() error { return e.err }

func newHTTPError(status int, format string, arguments ...any) error {
	return &httpError{status, fmt.Errorf(format, arguments...)}
}

// ServeHTTP answers one review.
func (w *webhook) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	ctx, cancel := context.WithTimeout(in.Context(), requestTimeout(in))
	defer cancel()
	about := "An admission review could not be answered."
	answer := w.review
	_, isHandler := w.handlersAt(in.URL.Path)
	if definition, ok := configurations.DefinitionAt(in.URL.Path); ok && !isHandler {
		about = "A conversion review could not be answered."
		answer = func(ctx context.Context, out http.ResponseWriter, in *http.Request) ([]byte, error) {
			return w.convert(ctx, out, in, definition)
		}
	}
	response, err := answer(ctx, out, in)
	if err != nil {
		status := http.StatusInternalServerError
		var known *httpError
		if errors.As(err, &known) {
			status = known.status
		}
		w.Refused(status)
		w.Logger.Info(about, "path", in.URL.Path, "from", in.RemoteAddr, "status", status, "reason", err.Error())
		http.Error(out, err.Error(), status)
		return
	}
	out.Header().Set("Content-Type", "application/json")
	if _, err := out.Write(response); err != nil {
		w.Logger.V(1).Info("The response to a review could not be sent.", "path", in.URL.Path, "error", err.Error())
	}
}

// review returns the response to a review as JSON.
func (w *webhook) review(ctx context.Context, out http.ResponseWriter, in *http.Request) ([]byte, error) {
	if err := checkMethod(out, in); err != nil {
		return nil, err
	}
	if err := w.CheckReady(ctx); err != nil {
		out.Header().Set("Retry-After", "1") // the API server retries as long as its own timeout allows
		return nil, newHTTPError(http.StatusServiceUnavailable, "the operator is not ready: %w", err)
	}
	handlers, found := w.handlersAt(in.URL.Path)
	if !found {
		return nil, newHTTPError(http.StatusNotFound, "there is no admission handler with the id %q: "+
			"correct the webhook configuration, or update the operator", in.URL.Path)
	}
	body, err := w.readBody(ctx, out, in, MaxBody)
	if err != nil {
		return nil, err
	}
	request, err := w.decode(body, in)
	if err != nil {
		return nil, err
	}
	ctx, end := w.traceReview(ctx, request, in.Header)
	answer := w.evaluate(ctx, request, handlers).response()
	end(answer)
	return json.Marshal(answer)
}

// handlersAt returns the handlers that are called at the path of a request.
func (w *webhook) handlersAt(path string) (handlers registry.Handlers, found bool) {
	handlers, found = w.paths[strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")]
	return handlers, found
}

// checkMethod returns an error for requests that are not reviews.
func checkMethod(out http.ResponseWriter, in *http.Request) error {
	if in.Method == http.MethodPost {
		return nil
	}
	out.Header().Set("Allow", http.MethodPost)
	return newHTTPError(http.StatusMethodNotAllowed, "reviews are sent with POST, not %s", in.Method)
}

// readBody reads the body within the limits of size and time. Without the limit of
// time, a slow sender could hold the memory for as long as it likes.
func (w *webhook) readBody(ctx context.Context, out http.ResponseWriter, in *http.Request, limit int64) ([]byte, error) {
	if in.ContentLength > limit {
		return nil, bodyTooLarge(limit)
	}
	// In HTTP/2 a deadline applies to the whole connection. To set it from the start
	// would cost more than everything else together.
	stop := context.AfterFunc(ctx, func() {
		// A server without deadlines has its own limits, or is a test.
		_ = http.NewResponseController(out).SetReadDeadline(time.Unix(1, 0))
	})
	defer stop()
	var content bytes.Buffer
	content.Grow(int(max(0, min(in.ContentLength, initialBufferSize))) + bytes.MinRead)
	_, err := content.ReadFrom(http.MaxBytesReader(out, in.Body, limit))
	body := content.Bytes()
	var excess *http.MaxBytesError
	switch {
	case errors.As(err, &excess):
		return nil, bodyTooLarge(limit)
	case err != nil:
		return nil, newHTTPError(http.StatusBadRequest, "the review could not be read: %w", err)
	case len(body) == 0:
		return nil, newHTTPError(http.StatusBadRequest, "the request has no body: a review is expected, as JSON")
	default:
		return body, nil
	}
}

func bodyTooLarge(limit int64) error {
	return newHTTPError(http.StatusRequestEntityTooLarge, "the review is larger than %d bytes", limit)
}

// initialBufferSize limits the memory that is allocated for the mere claim of a
// content length. Most reviews are smaller.
const initialBufferSize = 64 << 10

// requestTimeout returns the time that the API server waits, as its request says.
func requestTimeout(in *http.Request) time.Duration {
	timeout, err := time.ParseDuration(in.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 || timeout > MaxTimeout {
		return MaxTimeout
	}
	return timeout
}
