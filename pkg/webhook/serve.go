package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// httpError is a request that gets no review, with a status of HTTP and a sentence.
type httpError struct {
	status int
	err    error
}

func (p *httpError) Error() string { return p.err.Error() }

func (p *httpError) Unwrap() error { return p.err }

func newHTTPError(status int, format string, arguments ...any) error {
	return &httpError{status, fmt.Errorf(format, arguments...)}
}

// ServeHTTP answers one review.
func (w *webhook) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	ctx, cancel := context.WithTimeout(in.Context(), requestTimeout(in))
	defer cancel()
	answer, err := w.reviewResponse(ctx, out, in)
	if err != nil {
		w.writeError(out, in, err)
		return
	}
	out.Header().Set("Content-Type", "application/json")
	if _, err := out.Write(answer); err != nil {
		w.Logger.V(1).Info("Nobody has waited for the answer to a review.", "path", in.URL.Path, "error", err.Error())
	}
}

func (w *webhook) reviewResponse(ctx context.Context, out http.ResponseWriter, in *http.Request) ([]byte, error) {
	if in.Method != http.MethodPost {
		out.Header().Set("Allow", http.MethodPost)
		return nil, newHTTPError(http.StatusMethodNotAllowed, "admission reviews are posted, this is a %s", in.Method)
	}
	if err := w.CheckReady(ctx); err != nil {
		out.Header().Set("Retry-After", "1") // the API server does, as long as its own timeout allows
		return nil, newHTTPError(http.StatusServiceUnavailable, "the operator is not ready: %w", err)
	}
	handlers, found := w.handlersAt(in.URL.Path)
	if !found {
		return nil, newHTTPError(http.StatusNotFound, "there is no admission handler with the id %q: "+
			"correct the webhook configuration, or update the operator", in.URL.Path)
	}
	body, err := w.readBody(ctx, out, in)
	if err != nil {
		return nil, err
	}
	asked, err := w.decode(body, in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(asked.response(w.evaluate(ctx, asked, handlers)))
}

// readBody takes the body, within the limits of size and time. Whoever sends it too
// slowly would otherwise hold on to the memory for as long as it likes.
func (w *webhook) readBody(ctx context.Context, out http.ResponseWriter, in *http.Request) ([]byte, error) {
	// A deadline from the beginning would cost more than all else together in HTTP/2,
	// where it is a matter of the whole connection.
	stop := context.AfterFunc(ctx, func() {
		// A server that knows no deadlines has limits of its own, or is a test.
		_ = http.NewResponseController(out).SetReadDeadline(time.Unix(1, 0))
	})
	defer stop()
	var content bytes.Buffer
	content.Grow(int(max(0, min(in.ContentLength, initialBufferSize))) + bytes.MinRead)
	_, err := content.ReadFrom(http.MaxBytesReader(out, in.Body, w.MaxBody))
	body := content.Bytes()
	var excess *http.MaxBytesError
	switch {
	case errors.As(err, &excess):
		return nil, newHTTPError(http.StatusRequestEntityTooLarge, "the review is larger than %d bytes", excess.Limit)
	case err != nil:
		return nil, newHTTPError(http.StatusBadRequest, "the review could not be read: %w", err)
	case len(body) == 0:
		return nil, newHTTPError(http.StatusBadRequest, "the request has no body: an AdmissionReview is expected, as JSON")
	default:
		return body, nil
	}
}

// writeError answers what is no review, or cannot be answered.
func (w *webhook) writeError(out http.ResponseWriter, in *http.Request, err error) {
	status := http.StatusInternalServerError
	var known *httpError
	if errors.As(err, &known) {
		status = known.status
	}
	w.Logger.Info("An admission review could not be answered.", "path", in.URL.Path, "from", in.RemoteAddr, "status", status, "reason", err.Error())
	http.Error(out, err.Error(), status)
}

// initialBufferSize is what most reviews are smaller than: so much memory is given to whoever
// merely claims to send it.
const initialBufferSize = 64 << 10

// requestTimeout is how long the API server waits, as it says itself.
func requestTimeout(in *http.Request) time.Duration {
	timeout, err := time.ParseDuration(in.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 || timeout > MaxTimeout {
		return MaxTimeout
	}
	return timeout
}
