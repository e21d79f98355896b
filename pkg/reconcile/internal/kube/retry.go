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
)

// client-go repeats requests of its own accord: up to ten times whatever was
// answered by "Retry-After", writes included. But the API server says that of
// timeouts, too, and then the write may have been committed: its repetition is a
// conflict, which says that nothing was written. So here client-go repeats nothing,
// and of writes only those are repeated that were surely not executed.
const clientGoRetries = 0

// longestDelay is how long a worker waits because the server asks for it. What
// takes longer is returned, for the object to wait without a worker.
const maxRetryAfter = 5 * time.Second

// jitter is by which part a pause may be longer, so that what has failed together
// is not repeated together.
const jitter = 0.2

// do makes a request, and repeats it where its failure is worth that. A request
// ends with its timeout only; the pauses end with the context.
func (c *Client) doWithRetry(ctx context.Context, request *rest.Request, isRetriable func(error) bool) ([]byte, error) {
	for attempt := 0; ; attempt++ {
		data, err := c.doOnce(context.WithoutCancel(ctx), request)
		if err == nil || !isRetriable(err) || attempt >= len(c.networking.ErrorBackoffs) {
			return data, err
		}
		pause := wait.Jitter(c.networking.ErrorBackoffs[attempt], jitter)
		if asked := RetryAfter(err); asked > maxRetryAfter || !sleep(ctx, max(pause, asked)) {
			return data, err
		}
	}
}

// attempt makes a request once.
func (c *Client) doOnce(ctx context.Context, request *rest.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.networking.RequestTimeout)
	defer cancel()
	result := request.MaxRetries(clientGoRetries).Do(ctx)
	// Error decodes the server's explanation, which Raw would leave out.
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// sleep waits; false if the context is done before.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// RetryAfter is how long the API server wants to be left alone; 0 if it does not say.
func RetryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// unexecuted tells whether a request has surely not been executed: the server has
// turned it away, or it has not even reached one.
func isNotExecuted(err error) bool {
	var failed *net.OpError
	return apierrors.IsTooManyRequests(err) ||
		statusCode(err) == http.StatusServiceUnavailable && RetryAfter(err) > 0 ||
		utilnet.IsConnectionRefused(err) ||
		errors.As(err, &failed) && failed.Op == "dial"
}

// temporary tells whether the same request may succeed in a moment. An internal
// error is none of these: it has reached the server, and seldom goes by itself.
func isTemporary(err error) bool {
	switch statusCode(err) {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return isNotExecuted(err) || RetryAfter(err) > 0 || isConnectionLost(err)
}

// interrupted tells whether the connection has broken.
func isConnectionLost(err error) bool {
	return errors.Is(err, errClosed) || errors.Is(err, errNoAnswer) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// code is that of the answer; 0 if there was none.
func statusCode(err error) int32 {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return answer.Status().Code
	}
	return 0
}
