package main

import (
	"cmp"
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const theirFinalizer = "bench.kopf.dev/finalizer"

// newManager returns the manager of a hand-written operator.
func (env environment) newManager() (ctrl.Manager, error) {
	log.SetLogger(env.logger)
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme); err != nil {
		return nil, err
	}
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	env.config.QPS = -1
	return ctrl.NewManager(env.config, ctrl.Options{
		Scheme: scheme, Logger: env.logger,
		Metrics:                metrics.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Cache:                  cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
}

// handwritten is the same operator as a good engineer writes it with kubebuilder: typed
// objects; a cache without managedFields; no reconciliation after its own writes, by
// the generation; a finalizer; the handled spec in an annotation, to distinguish
// updates from creations and to repeat nothing after a restart.
type handwritten struct {
	events  bool
	workers int // default: those of the role
}

func (h handwritten) run(ctx context.Context, env environment) error {
	mgr, err := env.newManager()
	if err != nil {
		return err
	}
	r := &reconciler{Client: mgr.GetClient()}
	if h.events {
		r.recorder = mgr.GetEventRecorder("example")
	}
	if err := setUp(mgr, r, cmp.Or(h.workers, env.Workers)); err != nil {
		return err
	}
	go func() {
		if _, err := mgr.GetCache().GetInformer(ctx, &Example{}); err == nil { // waits for the list
			env.ready()
		}
	}()
	return mgr.Start(ctx)
}

type reconciler struct {
	client.Client
	recorder events.EventRecorder
}

func setUp(mgr ctrl.Manager, r reconcile.Reconciler, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&Example{}).
		WithEventFilter(predicate.GenerationChangedPredicate{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// Reconcile handles one object: three writes for a creation, two for an update, one for
// a deletion.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	example := &Example{}
	if err := r.Get(ctx, request.NamespacedName, example); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !example.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, example)
	}
	if controllerutil.AddFinalizer(example, theirFinalizer) {
		if err := r.Update(ctx, example); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, r.apply(ctx, example)
}

// handledSpec returns what is recorded of a handled spec.
func handledSpec(example *Example) (string, error) {
	text, err := json.Marshal(example.Spec)
	return string(text), err
}

// apply handles a spec that is not handled yet.
func (r *reconciler) apply(ctx context.Context, example *Example) error {
	text, err := handledSpec(example)
	if err != nil {
		return err
	}
	before := example.Annotations[handledByThem]
	if before == text {
		return nil
	}
	example.Status = outcome(example.Spec)
	if err := r.Status().Update(ctx, example); err != nil {
		return err
	}
	if example.Annotations == nil {
		example.Annotations = map[string]string{}
	}
	example.Annotations[handledByThem] = text
	if err := r.Update(ctx, example); err != nil {
		return err
	}
	r.report(ctx, example, before)
	return nil
}

// report logs the change and posts an event.
func (r *reconciler) report(ctx context.Context, example *Example, before string) {
	what := "created"
	if before != "" {
		what = "updated"
	}
	log.FromContext(ctx).Info("handled", "what", what, "revision", example.Spec.Revision)
	if r.recorder != nil {
		r.recorder.Eventf(example, nil, corev1.EventTypeNormal, "Handled", "Handle", "The object was %s.", what)
	}
}

func (r *reconciler) remove(ctx context.Context, example *Example) error {
	if !controllerutil.RemoveFinalizer(example, theirFinalizer) {
		return nil
	}
	log.FromContext(ctx).Info("removed")
	return client.IgnoreNotFound(r.Update(ctx, example))
}
