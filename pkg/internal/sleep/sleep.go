// Package sleep pauses a goroutine for as long as its context permits.
package sleep

import (
	"context"
	"time"
)

// For sleeps for the duration, or until the context is done. It reports whether the
// context is still not done, so that a loop can be conditional on it.
func For(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
