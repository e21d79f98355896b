// This example handles pods, which Kubernetes itself defines. Their status is written by
// others, and is what such operators are interested in.
//
// Select only the pods that you need, and think about what the operator leaves on them:
// all handlers but those of events write an annotation to the pod, and deletion handlers
// and daemons a finalizer.
package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// The status is not part of what update handlers see. A handler that names a field of it
// gets the changes of this field.
func phaseChanged(ctx context.Context, c *kopf.Change) error {
	before, _ := c.Old().Text()
	after, _ := c.New().Text()
	c.Logger().Info("The phase has changed.", "before", before, "after", after)
	if after == "Failed" {
		reason, _ := c.Status().String("reason")
		kopf.Warn(ctx, "Attention", "The pod has failed: "+reason)
	}
	return nil
}

// A pod is created without a node. The filter makes this handler wait for one.
func scheduled(_ context.Context, c *kopf.Change) error {
	node, _ := c.Spec().String("nodeName")
	c.Patch().Set(node, "metadata", "annotations", "example.com/first-node")
	return nil
}

// remove deletes pods that ended some time ago: the idle time of a timer begins with the
// last change of the fields that handlers name.
func remove(ctx context.Context, t *kopf.Tick) error {
	pod := &unstructured.Unstructured{}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetNamespace(t.Namespace())
	pod.SetName(t.Name())
	uid := t.UID() // not a new pod of the same name
	t.Logger().Info("The pod is deleted, because it has ended.")
	return client.IgnoreNotFound(t.Client().Delete(ctx, pod, client.Preconditions{UID: &uid}))
}

func hasEnded(a kopf.Arguments) bool {
	phase, _ := a.Status().String("phase")
	return phase == "Succeeded" || phase == "Failed"
}

func main() {
	pods := kopf.Resource("v1", "pods")
	watched := kopf.Labels(map[string]kopf.Matcher{"watched": kopf.Equal("yes")})
	kopf.OnField(pods, "status.phase", phaseChanged, watched)
	kopf.OnField(pods, "spec.nodeName", scheduled, watched, kopf.ValueBefore(kopf.Absent()), kopf.ValueAfter(kopf.Present()))
	kopf.Timer(pods, remove, watched, kopf.When(hasEnded), kopf.Idle(2*time.Second), kopf.Interval(time.Minute))
	kopf.Needs(pods, "delete")
	kopf.Main()
}
