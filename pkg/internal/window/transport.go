package window

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Wrap returns a transport whose requests pass the window. It can be called several times: all share
// the window.
func (w *Window) Wrap(next http.RoundTripper) http.RoundTripper { return transport{w, next} }

// WaitUntil returns a context whose requests stop to wait when the other context is done. A request
// that has been sent heeds only its own.
func WaitUntil(ctx, until context.Context) context.Context {
	return context.WithValue(ctx, untilKey{}, until)
}

type untilKey struct{}

type transport struct {
	window *Window
	next   http.RoundTripper
}

// RoundTrip sends the request when there is a seat for it. The seat is free when the answer begins: a
// caller that does not read it to its end cannot keep the seat.
func (t transport) RoundTrip(request *http.Request) (response *http.Response, err error) {
	of, waits := targetOf(request)
	if !waits {
		return t.next.RoundTrip(request)
	}
	ctx := request.Context()
	until, _ := ctx.Value(untilKey{}).(context.Context)
	s, err := t.window.enter(ctx, until, of.resource)
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	began := time.Now()
	defer func() { t.window.exit(s, outcomeOf(of, response, err, time.Since(began))) }()
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper returns the transport below, for tools that look for it.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// minTimeout is the shortest time after which a missing answer counts as a failure of the server.
const minTimeout = time.Second

// outcomeOf judges the answer to a request.
func outcomeOf(of target, response *http.Response, err error, took time.Duration) outcome {
	o := outcome{verb: of.verb, took: took}
	switch {
	case err != nil:
		// Connections that cannot be opened or break say nothing about the number of requests.
		if errors.Is(err, context.DeadlineExceeded) && took >= minTimeout {
			o.failure = TimedOut
		}
		return o
	case response == nil: // the transport below panics
		return o
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	o.pause = time.Duration(seconds) * time.Second
	switch code := response.StatusCode; {
	case of.isEviction: // has these answers for the budgets of pods
	case code == http.StatusTooManyRequests && of.verb == listing:
		// For moments, the server also refuses to list a resource that is new to it.
	case code == http.StatusTooManyRequests:
		o.failure = Refused
	case code == http.StatusGatewayTimeout:
		o.failure = TimedOut
	case code >= http.StatusInternalServerError && o.pause > 0:
		o.failure = Unavailable
	default:
		// The time of a list depends on its length, and errors of the server are not its usual answers.
		o.isTimed = of.verb != listing && code < http.StatusInternalServerError
	}
	return o
}
