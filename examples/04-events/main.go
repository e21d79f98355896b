// This example posts Kubernetes events, which `kubectl describe` shows below an object.
// Events inform people, and are deleted after an hour or so. Do not depend on them.
package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/kopf"
)

// logFn logs lines, which are also posted as events of the object, except for those of
// LogOnly. Lines at V(1) and above are posted only if the settings allow it.
func logFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The object is being checked.", "attempt", c.Retry(), "spec", c.Spec().Map())
	c.Logger().Error(errors.New("no network"), "The mail could not be sent.", "to", "owner")
	c.Logger().V(1).Info("This line is for developers.")
	kopf.LogOnly(c.Logger()).Info("The password is renewed.", "user", "admin")
	return nil
}

// createFn posts events about the handled object, which the context carries. The framework
// also posts events: that the handler succeeded, and that the creation is processed.
func createFn(ctx context.Context, _ *kopf.Change) error {
	kopf.Info(ctx, "SomeReason", "Some message")
	kopf.Warn(ctx, "SomeReason", "Some warning")
	kopf.Exception(ctx, "SomeReason", "Some exception:", errors.New("exception text"))
	kopf.Event(ctx, "SomeType", "SomeReason", "Some message of another type")
	return nil
}

// createPod posts an event about a child. The other object must exist, because events need
// its uid.
func createPod(ctx context.Context, c *kopf.Change) error {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}}
	if err := hierarchy.Adopt(ctx, pod, hierarchy.Strict()); err != nil {
		return err
	}
	err := c.Client().Create(ctx, pod)
	if apierrors.IsAlreadyExists(err) { // an earlier attempt was interrupted
		err = c.Client().Get(ctx, client.ObjectKeyFromObject(pod), pod)
	}
	if err != nil {
		return err
	}
	return kopf.EventFor(ctx, pod, corev1.EventTypeNormal, "SomeReason", "This pod belongs to "+c.Name())
}

func main() {
	kopf.OnCreate(kopf.Resource("kopfexamples"), logFn)
	kopf.OnCreate(kopf.Resource("kopfexamples"), createFn)
	kopf.OnCreate(kopf.Resource("kopfexamples"), createPod)
	kopf.Needs(kopf.Resource("v1", "pods"), "create", "get")
	kopf.Main()
}
