package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func sizeOf(c *kopf.Change) (resource.Quantity, error) {
	text, _ := c.Spec().String("size")
	size, err := resource.ParseQuantity(text)
	if err != nil {
		return size, kopf.Permanent(fmt.Errorf("spec.size must be a size such as 1Gi; it is %q", text))
	}
	return size, nil
}

func newPVC(name string, size resource.Quantity) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
}

// patchPVC changes the PVC whose name createFn stored in the status.
func patchPVC(ctx context.Context, c *kopf.Change, patch map[string]any) error {
	name, ok := c.Status().String("createFn", "pvc-name")
	if !ok {
		return kopf.Permanent(errors.New("there is no PVC because the creation failed: delete the object and create it again"))
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace(), Name: name}}
	return c.Client().Patch(ctx, pvc, client.RawPatch(types.MergePatchType, data))
}
