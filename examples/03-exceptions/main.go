// Errors of handlers, and what becomes of them: how many attempts there are, and
// when. The delays are short to be watched; real ones are minutes.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// It asks for another attempt in a second, and succeeds at the third one.
func temporaryFn(_ context.Context, c *kopf.Change) error {
	if c.Retry() < 2 {
		return kopf.Temporary(errors.New("the data is not there yet"), time.Second)
	}
	return nil
}

// It is called once: nothing will ever make this better.
func permanentFn(context.Context, *kopf.Change) error {
	return kopf.Permanent(errors.New("the object cannot be valid"))
}

// Any other error may go away by itself. Three attempts, and it fails.
func arbitraryFn(context.Context, *kopf.Change) error {
	return errors.New("the network is down")
}

// A panic is an error like any other. Here, both are only logged.
func ignoredFn(context.Context, *kopf.Change) error {
	panic("a mistake in the handler")
}

// The timeout is over all attempts. It ends the one that takes too long, if that
// one cares for its context: nobody can stop a function from the outside.
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
	kopf.OnCreate(kex, ignoredFn, kopf.Errors(kopf.ErrorsIgnored))
	kopf.OnCreate(kex, timeoutFn, kopf.Timeout(time.Second))
	kopf.Main()
}
