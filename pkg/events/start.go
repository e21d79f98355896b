package events

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

var (
	_ manager.Runnable               = (*Recorder)(nil)
	_ manager.LeaderElectionRunnable = (*Recorder)(nil)
)

// NeedLeaderElection is false: replicas that stand by have something to tell
// too. It also makes a manager stop the recorder after the handlers.
func (r *Recorder) NeedLeaderElection() bool { return false }

// Start posts the events until the context is cancelled, and then those that
// still wait, for DrainTimeout at most. It must run once at a time.
//
// Errors: never; an operator does not stop because of its events.
func (r *Recorder) Start(ctx context.Context) error {
	if r == nil {
		<-ctx.Done()
		return nil
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	context.AfterFunc(ctx, func() { time.AfterFunc(r.options.DrainTimeout, cancel) })
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case event := <-r.queue:
			r.handle(work, event)
		}
	}
	r.drain(work)
	return nil
}

func (r *Recorder) drain(ctx context.Context) {
	for {
		select {
		case event := <-r.queue:
			r.handle(ctx, event)
		default:
			return
		}
	}
}

func (r *Recorder) handle(ctx context.Context, event *corev1.Event) {
	if ctx.Err() != nil {
		r.dropped.Add(1)
	} else {
		r.deliver(ctx, event)
	}
	r.complaints.dropped(r.dropped.Load())
}
