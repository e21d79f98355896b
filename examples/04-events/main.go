// Kubernetes events: what `kubectl describe` shows below an object. They are for
// people, and are forgotten after an hour; nothing should depend on them.
package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// What a handler logs is an event of its object, too, unless it is for the log only.
// Details, V(1) and beyond, are events only if the settings say so.
func logFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The object is looked at.", "attempt", c.Retry(), "spec", c.Spec().Map())
	c.Logger().Error(errors.New("no network"), "The mail is not sent.", "to", "owner")
	c.Logger().V(1).Info("Whatever developers want to know.")
	kopf.LogOnly(c.Logger()).Info("The password is renewed.", "user", "admin")
	return nil
}

// The context knows which object is handled. The framework adds events of its
// own: that the handler succeeded, and that the creation is processed.
func createFn(ctx context.Context, _ *kopf.Change) error {
	kopf.Info(ctx, "SomeReason", "Some message")
	kopf.Warn(ctx, "SomeReason", "Some warning")
	kopf.Exception(ctx, "SomeReason", "Some exception:", errors.New("exception text"))
	kopf.Event(ctx, "SomeType", "SomeReason", "Some message of a type of its own")
	return nil
}

// Events can be about any other object, once that has a uid: about a child.
func createPod(ctx context.Context, c *kopf.Change) error {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}}
	if err := kopf.Adopt(ctx, pod, kopf.Strict()); err != nil {
		return err
	}
	err := c.Client().Create(ctx, pod)
	if apierrors.IsAlreadyExists(err) { // an attempt was interrupted
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
	kopf.Main()
}
