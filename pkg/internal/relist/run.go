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
	reflector := cache.NewReflectorWithOptions(source.ListWatch(), of, listedStore{store, source}, cache.ReflectorOptions{
		Name: "kopf", Logger: &silent, Backoff: &wait.Backoff{Duration: pauses.ReconnectBackoff, Factor: 2, Jitter: jitter, Steps: 10, Cap: pauses.ReconnectLimit},
	})
	pause := pauses.ReconnectBackoff
	for ctx.Err() == nil {
		began := time.Now()
		err := reflector.ListAndWatchWithContext(ctx)
		source.endList()
		if ends != nil && ends() {
			return
		}
		if time.Since(began) > patience*pause {
			pause = pauses.ReconnectBackoff
		}
		if !source.isAskedWithin(ctx, max(wait.Jitter(pause, jitter), retryAfter(err))) {
			pause = min(2*pause, pauses.ReconnectLimit)
		}
	}
}

// listedStore tells a source that its list is complete.
type listedStore struct {
	cache.ReflectorStore
	source *Source
}

var _ cache.ReflectorBookmarkStore = listedStore{}

// Replace is called with a complete list.
func (s listedStore) Replace(items []any, version string) error {
	defer s.source.endList()
	return s.ReflectorStore.Replace(items, version)
}

// Bookmark is called when there is nothing new up to a version.
func (s listedStore) Bookmark(version string) error {
	if known, ok := s.ReflectorStore.(cache.ReflectorBookmarkStore); ok {
		return known.Bookmark(version)
	}
	return nil
}

// patience is how many times longer than the pause before it a watch lasts that counts as a success.
const patience = 10

// jitter is the fraction by which a pause may be longer, so that watches that were interrupted
// together do not return together.
const jitter = 0.2

// isAskedWithin waits, and reports at once whether Run must list the objects now.
func (s *Source) isAskedWithin(ctx context.Context, pause time.Duration) bool {
	select {
	case <-s.asked:
		return true
	case <-time.After(pause):
	case <-ctx.Done():
	}
	return false
}
