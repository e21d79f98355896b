// The operator of the tutorial (docs/tutorial.md): an EphemeralVolumeClaim gets a
// PersistentVolumeClaim, which follows its size and its labels, and goes with it.
package main

import (
	"context"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func createFn(ctx context.Context, c *kopf.Change) error {
	size, err := sizeOf(c)
	if err != nil {
		return err
	}
	pvc := newPVC(c.Name(), size)
	if err := kopf.Adopt(ctx, pvc); err != nil {
		return err
	}
	// It exists already if an earlier attempt was interrupted after this.
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
		return nil // createFn has passed the labels on: Adopt does that too
	}
	c.Logger().Info("The labels have changed.", "diff", c.Diff().String())
	labels := map[string]any{}
	for _, key := range c.Old().View().Keys() {
		labels[key] = nil // in a patch, null removes; what is there still, follows
	}
	maps.Copy(labels, c.New().View().Map())
	return patchPVC(ctx, c, map[string]any{"metadata": map[string]any{"labels": labels}})
}

func main() {
	claims := kopf.Resource("ephemeralvolumeclaims")
	kopf.OnCreate(claims, createFn)
	kopf.OnUpdate(claims, updateFn, kopf.Field("spec.size"))
	kopf.OnField(claims, "metadata.labels", relabel)
	kopf.Main()
}
