package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// publish returns the ConfigMap of an object, which has the fields of its spec as texts. The
// operator keeps it as it is returned, and Kubernetes deletes it together with the object.
func publish(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	data := map[string]string{}
	for field, value := range c.Spec().Map() {
		data[field] = fmt.Sprint(value)
	}
	c.SetResult(map[string]any{"configmap": c.Name()}) // -> status.publish
	return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name()}, Data: data}}, nil
}
