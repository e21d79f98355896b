package relist

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// ErrNoAnswer is the error of a request that the API server has not answered in time.
var ErrNoAnswer = errors.New("the API server does not answer")

// Limit requests a watch. It gives up if there is no answer in time, and ends a watch that then
// delivers nothing for that time. Its connection may be dead without notice, or its server may be far
// behind. A limit that is not positive is none.
func Limit(ctx context.Context, limit time.Duration, request func(context.Context) (watch.Interface, error)) (watch.Interface, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	if limit > 0 {
		defer time.AfterFunc(limit, func() { cancel(ErrNoAnswer) }).Stop()
	}
	started, err := request(ctx)
	if err != nil {
		if errors.Is(context.Cause(ctx), ErrNoAnswer) {
			err = ErrNoAnswer
		}
		cancel(nil)
		return nil, err
	}
	l := &limitedWatch{events: make(chan watch.Event), cancel: cancel}
	go l.forward(ctx, started, limit)
	return l, nil
}

// limitedWatch is a watch that ends if it is silent for too long.
type limitedWatch struct {
	events  chan watch.Event
	cancel  context.CancelCauseFunc // ends it, and its request
	expired atomic.Bool

	mu    sync.Mutex
	shown proof // by its last event
}

var _ watch.Interface = (*limitedWatch)(nil)

// Stop ends the watch.
func (l *limitedWatch) Stop() { l.cancel(nil) }

// ResultChan returns the events.
func (l *limitedWatch) ResultChan() <-chan watch.Event { return l.events }

// lastShown returns what the last event proves.
func (l *limitedWatch) lastShown() proof {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown
}

func (l *limitedWatch) observe(event watch.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown.add(event)
}

func (l *limitedWatch) forward(ctx context.Context, from watch.Interface, limit time.Duration) {
	defer close(l.events)
	defer l.cancel(nil)
	defer from.Stop()
	var silent <-chan time.Time
	reset := func() {}
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		silent = timer.C
		reset = func() { timer.Reset(limit) }
	}
	for {
		select {
		case event, open := <-from.ResultChan():
			if !open {
				return
			}
			select {
			case l.events <- event:
				l.observe(event)
			case <-ctx.Done():
				return
			}
			reset()
		case <-silent:
			l.expired.Store(true)
			return
		case <-ctx.Done():
			return
		}
	}
}
