package kube

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/internal/window"
)

// clientGoRetries disables the retries of client-go, which repeats requests, including
// writes, up to ten times after any response with Retry-After. This package repeats only
// writes that were certainly not executed; see the package comment.
const clientGoRetries = 0

// maxRetryAfter is the maximum delay requested by the server that a worker waits for. The
// caller handles longer delays, so that the object waits without a worker.
const maxRetryAfter = 5 * time.Second

// jitter is the fraction by which a delay may be longer, so that requests that failed
// together are not repeated together.
const jitter = 0.2

// kind is a kind of requests.
type kind struct {
	isRetriable func(error) bool // after which failures it is repeated
	lasts       bool             // a running request does not end with its context, only with its timeout
}

// A write that is abandoned may have been committed or not. A write that waits for other requests was not
// sent, and ends with its context.
var (
	reads  = kind{isTemporary, false}
	writes = kind{isNotExecuted, true}
)

// doWithRetry makes a request, and repeats it after retriable failures. The context ends the
// delays.
func (c *Client) doWithRetry(ctx context.Context, request *rest.Request, of kind) ([]byte, error) {
	running := ctx
	if of.lasts {
		running = window.WaitUntil(context.WithoutCancel(ctx), ctx)
	}
	for attempt := 0; ; attempt++ {
		data, err := c.doOnce(running, request)
		if err == nil || !of.isRetriable(err) || attempt >= len(c.networking.ErrorBackoffs) {
			return data, err
		}
		delay := wait.Jitter(c.networking.ErrorBackoffs[attempt], jitter)
		if asked := RetryAfter(err); asked > maxRetryAfter || !sleep.For(ctx, max(delay, asked)) {
			return data, err
		}
	}
}

// doOnce makes a request once.
func (c *Client) doOnce(ctx context.Context, request *rest.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.networking.RequestTimeout)
	defer cancel()
	result := request.MaxRetries(clientGoRetries).Do(ctx)
	// Error decodes the server's explanation, which Raw omits.
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// RetryAfter returns the delay that the API server requests, or 0 if there is none.
func RetryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// isNotExecuted reports whether a request was certainly not executed: the server
// rejected it, or it did not reach a server.
func isNotExecuted(err error) bool {
	var failed *net.OpError
	return apierrors.IsTooManyRequests(err) ||
		errors.Is(err, window.ErrNotSent) ||
		statusCode(err) == http.StatusServiceUnavailable && RetryAfter(err) > 0 ||
		utilnet.IsConnectionRefused(err) ||
		errors.As(err, &failed) && failed.Op == "dial"
}

// isTemporary reports whether the same request may soon succeed. An internal error is not
// temporary: the request has reached the server, and such errors rarely disappear by
// themselves.
func isTemporary(err error) bool {
	switch statusCode(err) {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	isConnectionLost := utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
	return isNotExecuted(err) || RetryAfter(err) > 0 || isConnectionLost
}

// statusCode returns the HTTP status of the response, or 0 if there was none.
func statusCode(err error) int32 {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return answer.Status().Code
	}
	return 0
}
