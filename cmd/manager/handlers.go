package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// publish applies the ConfigMap when an object was created or changed.
func publish(ctx context.Context, c *kopf.Change) error {
	if err := apply(ctx, c.Spec()); err != nil {
		return err
	}
	c.SetResult(map[string]any{"configmap": c.Name()}) // -> status.publish
	return nil
}

// restore undoes what other clients have done to the ConfigMap.
func restore(ctx context.Context, t *kopf.Tick) error { return apply(ctx, t.Spec()) }

// withdraw deletes the ConfigMap. The garbage collector would delete it later; this way
// the object does not disappear before the ConfigMap.
func withdraw(ctx context.Context, c *kopf.Change) error {
	child := &corev1.ConfigMap{}
	child.Name, child.Namespace = c.Name(), c.Namespace()
	return client.IgnoreNotFound(c.Client().Delete(ctx, child))
}

// apply creates or changes the ConfigMap of the handled object. It can be repeated.
func apply(ctx context.Context, spec kopf.View) error {
	data := map[string]any{}
	for field, value := range spec.Map() {
		data[field] = fmt.Sprint(value)
	}
	child := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
	if err := kopf.Adopt(ctx, child, kopf.Strict()); err != nil {
		return err
	}
	return kopf.ClientFrom(ctx).Apply(ctx, client.ApplyConfigurationFromUnstructured(child),
		client.ForceOwnership, client.FieldOwner("kopf-manager"))
}
