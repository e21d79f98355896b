package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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

// child identifies the ConfigMap of an object.
type child struct {
	owner types.UID
	name  string
}

// byOwner indexes the ConfigMaps that belong to objects. The operator watches them, so that
// looking at them needs no requests.
func byOwner(_ context.Context, i *kopf.IndexedOf[*corev1.ConfigMap]) (map[child]map[string]string, error) {
	owner := metav1.GetControllerOf(i.Object())
	if owner == nil || owner.Kind != "KopfExample" {
		return map[child]map[string]string{}, nil // nil would keep what it was before
	}
	return map[child]map[string]string{{owner.UID, i.Name()}: i.Object().Data}, nil
}

// restore returns a timer that undoes what other clients have done to the ConfigMap. It compares
// in memory: if nothing is missing or different, it makes no request. An event handler would be
// faster, but is not retried when the API server does not answer.
func restore(published *kopf.Index[child, map[string]string]) func(context.Context, *kopf.Tick) error {
	return func(ctx context.Context, t *kopf.Tick) error {
		for _, data := range published.Get(child{t.UID(), t.Name()}) {
			if contains(data, dataOf(t.Spec())) {
				return nil
			}
		}
		t.Logger().Info("The ConfigMap is restored.")
		return apply(ctx, t.Spec())
	}
}

// contains reports whether the data has all of the wanted fields. Others belong to other clients.
func contains(data, wanted map[string]string) bool {
	for field, value := range wanted {
		if found, exists := data[field]; !exists || found != value {
			return false
		}
	}
	return true
}

// withdraw deletes the ConfigMap. The garbage collector would delete it later; this way
// the object does not disappear before the ConfigMap.
func withdraw(ctx context.Context, c *kopf.Change) error {
	published := &corev1.ConfigMap{}
	published.Name, published.Namespace = c.Name(), c.Namespace()
	return client.IgnoreNotFound(c.Client().Delete(ctx, published))
}

// apply creates or changes the ConfigMap of the handled object. It can be repeated.
func apply(ctx context.Context, spec kopf.View) error {
	data := map[string]any{}
	for field, text := range dataOf(spec) {
		data[field] = text
	}
	published := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
	if err := kopf.Adopt(ctx, published, kopf.Strict()); err != nil {
		return err
	}
	return kopf.ClientFrom(ctx).Apply(ctx, client.ApplyConfigurationFromUnstructured(published),
		client.ForceOwnership, client.FieldOwner("kopf-manager"))
}

// dataOf returns the fields of a spec as texts.
func dataOf(spec kopf.View) map[string]string {
	data := map[string]string{}
	for field, value := range spec.Map() {
		data[field] = fmt.Sprint(value)
	}
	return data
}
