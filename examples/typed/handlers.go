package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/kopf-go/kopf/examples/typed/api/v1"
	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/kopf"
)

func handlers() *kopf.Registry {
	registry := kopf.NewRegistry()
	claims := kopf.For[*v1.EphemeralVolumeClaim](registry)
	claims.OnCreate(createFn)
	claims.OnUpdate(resizeFn, kopf.Field("spec.size"))
	claims.Timer(watchFn, kopf.Interval(time.Second), kopf.WhenObject(hasVolume))
	return registry
}

func createFn(ctx context.Context, claim *v1.EphemeralVolumeClaim, c *kopf.Change) error {
	pvc := newPVC(claim)
	if err := hierarchy.Adopt(ctx, pvc); err != nil {
		return err
	}
	if err := client.IgnoreAlreadyExists(c.Client().Create(ctx, pvc)); err != nil {
		return err
	}
	// The claim is a copy. To change the object, pass a function, which gets the latest
	// version. Fields that the Go type does not have are kept.
	kopf.Update(c, func(latest *v1.EphemeralVolumeClaim) error {
		latest.Status.PVCName = pvc.Name
		return nil
	})
	return nil
}

func resizeFn(ctx context.Context, claim *v1.EphemeralVolumeClaim, c *kopf.Change) error {
	old := &v1.EphemeralVolumeClaim{}
	found, err := c.DecodeOld(old) // the old state of very large objects is unknown
	if err != nil {
		return err // the former size was no quantity
	}
	if found && claim.Spec.Size.Cmp(old.Spec.Size) < 0 {
		return kopf.Permanent(fmt.Errorf("a volume of %s cannot shrink to %s", &old.Spec.Size, &claim.Spec.Size))
	}
	pvc := newPVC(claim)
	unsized := pvc.DeepCopy()
	unsized.Spec.Resources.Requests = nil
	return c.Client().Patch(ctx, pvc, client.MergeFrom(unsized)) // patches only the size
}

// hasVolume is a filter that sees the Go type.
func hasVolume(claim *v1.EphemeralVolumeClaim) bool { return claim.Status.PVCName != "" }

// watchFn gets the object as it is when the timer calls it.
func watchFn(ctx context.Context, claim *v1.EphemeralVolumeClaim, t *kopf.Tick) error {
	pvc := &corev1.PersistentVolumeClaim{}
	if err := t.Client().Get(ctx, client.ObjectKey{Namespace: t.Namespace(), Name: claim.Status.PVCName}, pvc); err != nil {
		return err
	}
	t.Logger().Info("The claim has a volume.", "phase", pvc.Status.Phase)
	return nil
}

func newPVC(claim *v1.EphemeralVolumeClaim) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Size},
			},
		},
	}
}
