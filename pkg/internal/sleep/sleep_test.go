package sleep

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if !For(t.Context(), time.Hour) || time.Since(start) != time.Hour {
			t.Errorf("slept for %v, want an hour", time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if For(ctx, time.Hour) || time.Since(start) != time.Second {
			t.Errorf("slept for %v, want to be interrupted after a second", time.Since(start))
		}
		if For(ctx, 0) {
			t.Error("the context was done before")
		}
	})
}
