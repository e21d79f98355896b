package operator

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// serve receives reviews until the context is done.
func (a *admissions) serve(ctx context.Context, reviews http.Handler) error {
	if a == nil || a.server == nil {
		return nil
	}
	over, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(reserve, end) })()
	endpoint := a.published.Endpoint(until(over, reviews), a.endpoint)
	publish := endpoint.Publish
	endpoint.Publish = func(ctx context.Context, config admissionregistrationv1.WebhookClientConfig) error {
		err := publish(ctx, config)
		if err == nil {
			a.toldOnce.Do(func() { close(a.reachable) })
		}
		return err
	}
	if err := a.server.Serve(log.IntoContext(ctx, a.logger), endpoint); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the admission server (Settings.Admission.Server) has failed: %w", err)
	}
	return nil
}

// until cancels requests that are still answered when the context is done.
func until(over context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(over, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// known waits until the API servers can ask the admission handlers.
func (a *admissions) known(ctx context.Context) bool {
	if a == nil {
		return true
	}
	select {
	case <-a.reachable:
		return true
	case <-ctx.Done():
		return false
	}
}

// cleanupTimeout is how long the cluster may take to forget the admission handlers.
const cleanupTimeout = 10 * time.Second

// around runs the work of a leader, and keeps the configurations up to date as long
// as it lasts. They are cleaned up after it, unless the lead is lost: then the next
// leader has them already.
func (a *admissions) around(ctx context.Context, lost func() bool, work func(context.Context) error) error {
	if a == nil || a.published == nil {
		return work(ctx)
	}
	leading, end := context.WithCancel(context.WithoutCancel(ctx))
	var manager sync.WaitGroup
	manager.Go(func() { a.published.RunLeader(leading) })
	err := work(ctx)
	if !lost() {
		a.cleanUp(ctx)
	}
	end()
	manager.Wait()
	return err
}

func (a *admissions) cleanUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := a.published.Cleanup(ctx); err != nil {
		a.logger.Error(err, "The configurations of the admission handlers are left in the cluster.")
	}
}
