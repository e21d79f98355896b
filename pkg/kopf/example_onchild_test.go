package kopf_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// A web reports how many of its pods are ready. Its own cycles and the calls for its pods are
// independent.
func ExampleOnChild() {
	kopf.OnChild(kopf.Resource("webs"), kopf.Resource("v1", "pods"), countReady)
}

func countReady(_ context.Context, c *kopf.ChildChange) error {
	ready := int64(0)
	for _, pod := range c.Children() {
		if phase, _ := pod.Status().String("phase"); phase == "Running" {
			ready++
		}
	}
	c.Patch().Set(ready, "status", "readyPods")
	return nil
}

// A namespace cannot have an owner in another namespace, so a label says which team it
// belongs to: example.com/team, with the uid of the team.
func ExampleChildLabel() {
	kopf.OnChild(kopf.Resource("teams"), kopf.Resource("v1", "namespaces"), namespaceChanged, kopf.ChildLabel("example.com/team"))
}

func namespaceChanged(_ context.Context, c *kopf.ChildChange) error {
	switch c.Reason() {
	case kopf.ReasonResume:
		c.Logger().Info("The namespaces of the team are known.", "namespaces", len(c.Children()))
	case kopf.ReasonDelete:
		c.Logger().Info("The team has lost a namespace.", "namespace", c.Child().Name())
	default:
		c.Logger().Info("A namespace of the team has changed.", "diff", c.Diff())
	}
	return nil
}

// The parent and its children can be Go objects.
func ExampleOnChildOf() {
	kopf.OnChildOf(kopf.DefaultRegistry, func(_ context.Context, node *corev1.Node, pod *corev1.Pod, c *kopf.ChildChange) error {
		if pod != nil && pod.Status.Phase == corev1.PodFailed {
			c.Logger().Info("A pod has failed.", "node", node.Name, "pod", pod.Name)
		}
		return nil
	}, kopf.ID("podOfNode"), kopf.ChildLabel("example.com/node"))
}
