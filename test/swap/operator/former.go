//go:build former

package main

import (
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// declareOrdered declares the handlers of later.go as Kopf has them: without an order, and without the timer.
func declareOrdered(registry *kopf.Registry, examples kopf.Selector, backoff time.Duration) {
	for _, id := range []string{"again", "rescue", "second", "first"} {
		handler := follow(id)
		registry.OnCreate(examples, handler, kopf.ID(id), kopf.Backoff(backoff))
		registry.OnUpdate(examples, handler, kopf.ID(id), kopf.Backoff(backoff))
	}
}
