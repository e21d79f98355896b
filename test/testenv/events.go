package testenv

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Events reads the Kubernetes events about the object each time it is polled, as
// "Warning HandlerFailed: the message":
//
//	g.Eventually(cluster.Events(obj)).Should(gomega.ContainElement("Normal HandlerSucceeded: Handler fn succeeded."))
func (c *Cluster) Events(about client.Object) func() ([]string, error) {
	namespace := cmp.Or(about.GetNamespace(), corev1.NamespaceDefault)
	return func() ([]string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		var list corev1.EventList
		if err := c.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		var texts []string
		for _, event := range list.Items {
			if event.InvolvedObject.UID == about.GetUID() {
				texts = append(texts, event.Type+" "+event.Reason+": "+event.Message)
			}
		}
		return texts, nil
	}
}
