package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// childrenReconcilers is the operator that keeps the same children as a good engineer writes it
// with kubebuilder: Owns for each kind, and server-side apply of all children, because it does
// not know which of them has changed. It records the handled spec on the object, if that has
// changed.
type childrenReconcilers struct{}

func (childrenReconcilers) run(ctx context.Context, env environment) error {
	mgr, err := env.newManager()
	if err != nil {
		return err
	}
	r := &childrenReconciler{reconciler{Client: mgr.GetClient()}, env.tally}
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err = ctrl.NewControllerManagedBy(mgr).
		For(&Example{}, changed).
		Owns(&appsv1.Deployment{}, changed).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Secret{}).
		Owns(&corev1.ServiceAccount{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: env.Workers}).
		Complete(r)
	if err != nil {
		return err
	}
	go func() {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			env.ready()
		}
	}()
	return mgr.Start(ctx)
}

type childrenReconciler struct {
	reconciler
	tally *tally
}

// Reconcile applies the children of one object.
func (r *childrenReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.tally.called(request.Name)
	example := &Example{}
	if err := r.Get(ctx, request.NamespacedName, example); err != nil || !example.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, child := range applied(example) {
		if err := r.Apply(ctx, child, client.FieldOwner("bench"), client.ForceOwnership); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, r.record(ctx, example)
}

// record stores the handled spec.
func (r *childrenReconciler) record(ctx context.Context, example *Example) error {
	text, err := handledSpec(example)
	if err != nil || example.Annotations[handledByThem] == text {
		return err
	}
	before := example.DeepCopy()
	if example.Annotations == nil {
		example.Annotations = map[string]string{}
	}
	example.Annotations[handledByThem] = text
	return r.Patch(ctx, example, client.MergeFrom(before))
}

// applied returns the children of an object: those of childrenFor.
func applied(example *Example) []runtime.ApplyConfiguration {
	name, host := example.Name, example.Spec.Host
	labels := map[string]string{childLabel: name}
	owner := metav1ac.OwnerReference().WithAPIVersion(groupVersion.String()).WithKind(kind).WithName(name).WithUID(example.UID).
		WithController(true).WithBlockOwnerDeletion(true)
	container := corev1ac.Container().WithName("web").WithImage("registry.example.com/shop/frontend:1.24.3").
		WithPorts(corev1ac.ContainerPort().WithContainerPort(8080)).
		WithEnv(corev1ac.EnvVar().WithName("HOST").WithValue(host), corev1ac.EnvVar().WithName("LOG_LEVEL").WithValue("info"))
	template := corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().WithContainers(container))
	return []runtime.ApplyConfiguration{
		appsv1ac.Deployment(name, namespace).WithLabels(labels).WithOwnerReferences(owner).WithSpec(appsv1ac.DeploymentSpec().
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).WithTemplate(template)),
		corev1ac.Service(name, namespace).WithLabels(labels).WithOwnerReferences(owner).WithSpec(corev1ac.ServiceSpec().
			WithClusterIP(corev1.ClusterIPNone).WithSelector(labels).WithPorts(corev1ac.ServicePort().WithPort(8080))),
		corev1ac.ConfigMap(name, namespace).WithLabels(labels).WithOwnerReferences(owner).WithData(configOf(host, example.Spec.Revision)),
		corev1ac.Secret(name, namespace).WithLabels(labels).WithOwnerReferences(owner).WithData(map[string][]byte{"password": []byte("secret of " + host)}),
		corev1ac.ServiceAccount(name, namespace).WithLabels(labels).WithOwnerReferences(owner),
	}
}
