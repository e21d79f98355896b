package main

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// waitingOperator is an operator of this project whose creation handler makes one request
// and then waits, and which handles config maps at the same time.
type waitingOperator struct{}

func (waitingOperator) run(ctx context.Context, env environment) error {
	registry := kopf.NewRegistry()
	registry.OnCreate(kopf.Resource("kopfexamples"), func(ctx context.Context, c *kopf.Change) error {
		fresh := &Example{}
		if err := c.Client().Get(ctx, client.ObjectKey{Namespace: c.Namespace(), Name: c.Name()}, fresh); err != nil {
			return err
		}
		return env.tally.await(ctx)
	}, kopf.ID("wait"))
	probes := kopf.Labels(map[string]kopf.Matcher{probeLabel: kopf.Present()})
	nothing := func(context.Context, *kopf.Change) error { return nil }
	registry.OnCreate(kopf.Resource("configmaps"), nothing, kopf.ID("probe"), probes)
	registry.OnUpdate(kopf.Resource("configmaps"), nothing, kopf.ID("probe"), probes)
	return operateKopf(ctx, env, registry, quietly)
}

// await waits like a handler that waits for something outside.
func (t *tally) await(ctx context.Context) error {
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	select {
	case <-time.After(time.Duration(t.wait.Load())):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitingReconciler is the hand-written reconciler, which waits before it writes.
type waitingReconciler struct {
	reconciler
	tally *tally
}

// Reconcile waits unless the object is handled already.
func (r *waitingReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	example := &Example{}
	if err := r.Get(ctx, request.NamespacedName, example); err == nil && example.DeletionTimestamp.IsZero() && example.Annotations[handledByThem] == "" {
		if err := r.tally.await(ctx); err != nil {
			return ctrl.Result{}, err
		}
	}
	return r.reconciler.Reconcile(ctx, request)
}

// waitingHandwritten is a controller-runtime operator with the waiting reconciler.
type waitingHandwritten struct{}

func (waitingHandwritten) run(ctx context.Context, env environment) error {
	mgr, err := env.newManager()
	if err != nil {
		return err
	}
	r := &waitingReconciler{reconciler{Client: mgr.GetClient()}, env.tally}
	if err := setUp(mgr, r, env.Workers); err != nil {
		return err
	}
	go func() {
		if _, err := mgr.GetCache().GetInformer(ctx, &Example{}); err == nil { // waits for the list
			env.ready()
		}
	}()
	return mgr.Start(ctx)
}
