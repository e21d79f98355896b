// This is the operator of the tutorial (docs/tutorial.md). It creates a
// PersistentVolumeClaim for every EphemeralVolumeClaim, and keeps its size and labels up
// to date. Kubernetes deletes both together.
package main

import (
	"context"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/kopf"
)

func createFn(ctx context.Context, c *kopf.Change) error {
	size, err := sizeOf(c)
	if err != nil {
		return err
	}
	pvc := newPVC(c.Name(), size)
	if err := hierarchy.Adopt(ctx, pvc); err != nil {
		return err
	}
	// The PVC exists already if an earlier attempt was interrupted after this call.
	if err := client.IgnoreAlreadyExists(c.Client().Create(ctx, pvc)); err != nil {
		return err
	}
	c.SetResult(map[string]any{"pvc-name": pvc.Name})
	return nil
}

func updateFn(ctx context.Context, c *kopf.Change) error {
	size, err := sizeOf(c)
	if err != nil {
		return err
	}
	requests := map[string]any{"storage": size.String()}
	return patchPVC(ctx, c, map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": requests}}})
}

func relabel(ctx context.Context, c *kopf.Change) error {
	if c.Reason() == kopf.ReasonCreate {
		return nil // createFn has set the labels: Adopt copies them
	}
	c.Logger().Info("The labels have changed.", "diff", c.Diff().String())
	labels := map[string]any{}
	for _, key := range c.Old().View().Keys() {
		labels[key] = nil // null removes a label; those that still exist are added below
	}
	maps.Copy(labels, c.New().View().Map())
	return patchPVC(ctx, c, map[string]any{"metadata": map[string]any{"labels": labels}})
}

func main() {
	claims := kopf.Resource("ephemeralvolumeclaims")
	kopf.OnCreate(claims, createFn)
	kopf.OnUpdate(claims, updateFn, kopf.Field("spec.size"))
	kopf.OnField(claims, "metadata.labels", relabel)
	kopf.Needs(kopf.Resource("v1", "persistentvolumeclaims"), "create", "patch")
	kopf.Main()
}
