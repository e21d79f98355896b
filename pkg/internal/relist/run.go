package relist

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kopf-go/kopf/pkg/settings"
)

// Run lists and watches objects of a type into a store, again and again until the context is done or
// the function that is called after each end returns true; nil does not. The pauses are those of the settings: they
// grow while lists fail, or watches end soon. After Source.Refresh, there is none.
//
// An informer of client-go has pauses of up to a minute after a few interruptions, which cannot be
// configured. What reflectors log, the source reports with more details.
func Run(ctx context.Context, pauses settings.Watching, source *Source, of any, store cache.ReflectorStore, ends func() bool) {
	silent := logr.Discard()
	ctx = klog.NewContext(ctx, silent)
	reflector := cache.NewReflectorWithOptions(source.ListWatch(), of, store, cache.ReflectorOptions{
		Name: "kopf", Logger: &silent, Backoff: &wait.Backoff{Duration: pauses.ReconnectBackoff, Factor: 2, Jitter: jitter, Steps: 10, Cap: pauses.ReconnectLimit},
	})
	pause := pauses.ReconnectBackoff
	for ctx.Err() == nil {
		began := time.Now()
		err := reflector.ListAndWatchWithContext(ctx)
		if ends != nil && ends() {
			return
		}
		if time.Since(began) > patience*pause {
			pause = pauses.ReconnectBackoff
		}
		if source.isAsked() {
			continue
		}
		source.pause(ctx, max(wait.Jitter(pause, jitter), retryAfter(err)))
		pause = min(2*pause, pauses.ReconnectLimit)
	}
}

// patience is how many times longer than the pause before it a watch lasts that counts as a success.
const patience = 10

// jitter is the fraction by which a pause may be longer, so that watches that were interrupted
// together do not return together.
const jitter = 0.2

// Refresh is like Interrupt, but nothing has failed: the selectors of the source have changed. The list begins at once.
func (s *Source) Refresh() {
	select {
	case s.asked <- struct{}{}:
	default: // it will begin anyway
	}
	s.Interrupt()
}

// isAsked reports whether Run must list the objects without a pause, once.
func (s *Source) isAsked() bool {
	select {
	case <-s.asked:
		return true
	default:
		return false
	}
}

// pause waits, unless the objects must be listed at once.
func (s *Source) pause(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.asked:
	case <-ctx.Done():
	}
}
