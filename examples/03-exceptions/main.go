// This example shows how errors determine the number and the times of attempts. The delays
// are short, so that you can watch them; in production, use minutes.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// temporaryFn requests another attempt after a second, and succeeds in the third one.
func temporaryFn(_ context.Context, c *kopf.Change) error {
	if c.Retry() < 2 {
		return kopf.Temporary(errors.New("the data is not there yet"), time.Second)
	}
	return nil
}

// permanentFn is called once, because another attempt would not help.
func permanentFn(context.Context, *kopf.Change) error {
	return kopf.Permanent(errors.New("the object is invalid"))
}

// arbitraryFn returns any other error, which may be temporary. It fails permanently after
// three attempts.
func arbitraryFn(context.Context, *kopf.Change) error {
	return errors.New("the network is down")
}

// growingFn waits longer after each attempt, and succeeds in the fourth one.
func growingFn(_ context.Context, c *kopf.Change) error {
	if c.Retry() < 3 {
		return errors.New("the service is overloaded")
	}
	return nil
}

// ignoredFn panics, which counts as an error. Its errors are only logged.
func ignoredFn(context.Context, *kopf.Change) error {
	panic("a mistake in the handler")
}

// timeoutFn shows that the timeout covers all attempts. When it expires, the context of the
// running attempt is canceled; the function must heed that.
func timeoutFn(ctx context.Context, c *kopf.Change) error {
	if c.Retry() == 0 {
		return kopf.Temporary(errors.New("the database is locked"), 100*time.Millisecond)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func main() {
	kex := kopf.Resource("kopfexamples")
	kopf.OnCreate(kex, temporaryFn)
	kopf.OnCreate(kex, permanentFn)
	kopf.OnCreate(kex, arbitraryFn, kopf.Retries(3), kopf.Backoff(500*time.Millisecond))
	kopf.OnCreate(kex, growingFn, kopf.ExponentialBackoff(100*time.Millisecond, time.Second))
	kopf.OnCreate(kex, ignoredFn, kopf.Errors(kopf.ErrorsIgnored))
	kopf.OnCreate(kex, timeoutFn, kopf.Timeout(time.Second))
	kopf.Main()
}
