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

// NeedLeaderElection returns false, because standby replicas post events, too. It also
// makes a manager stop the recorder after the handlers.
func (r *Recorder) NeedLeaderElection() bool { return false }

// Start posts events until the context is canceled. Then it posts the waiting events, for
// at most DrainTimeout. Do not run it more than once at a time.
//
// It never returns an error: an operator must not stop because of its events.
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
	for {
		select {
		case event := <-r.queue:
			r.handle(work, event)
		default:
			return nil
		}
	}
}

func (r *Recorder) handle(ctx context.Context, event *corev1.Event) {
	if ctx.Err() != nil {
		r.dropped.Add(1)
	} else {
		r.recordToSink(ctx, event)
	}
	r.losses.dropped(r.dropped.Load())
}
