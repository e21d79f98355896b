// This example has indices: lookup tables of other objects, in memory. Handlers use them
// instead of asking the API server.
//
// An index is filled from all objects before any handler is called, and kept up to date.
// The operator does not write to objects that are only indexed.
package main

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// label is the key of the first index. Keys have any comparable type. Several pods can have
// the same key, and a pod has a key for each of its labels.
type label struct{ namespace, key, value string }

var podsByLabel = kopf.NewIndex(kopf.DefaultRegistry, kopf.Resource("v1", "pods"), byLabel, kopf.When(isAlive))

func byLabel(_ context.Context, i *kopf.Indexed) (map[label]string, error) {
	names := map[label]string{}
	for key, value := range i.Labels() {
		names[label{i.Namespace(), key, value}] = i.Name()
	}
	return names, nil
}

// isAlive is a filter. Pods that no longer match the filters are removed from the index.
func isAlive(pod kopf.Arguments) bool {
	phase, _ := pod.Status().String("phase")
	return phase != "Succeeded" && phase != "Failed"
}

// images uses Go types. Its keys are the set of images; the values do not matter. The result
// for a pod replaces the earlier result for that pod.
var images = kopf.NewIndexOf(kopf.For[*corev1.Pod](kopf.DefaultRegistry), byImage)

func byImage(_ context.Context, pod *corev1.Pod, _ *kopf.Indexed) (map[string]struct{}, error) {
	set := map[string]struct{}{}
	for _, container := range pod.Spec.Containers {
		set[container.Image] = struct{}{}
	}
	return set, nil
}

// createFn can rely on the index: it contains all pods, even if the object existed before
// the operator started.
func createFn(_ context.Context, c *kopf.Change) error {
	tier, _ := c.Spec().String("tier")
	c.SetResult(map[string]any{"pods": len(podsByLabel.Get(label{c.Namespace(), "tier", tier}))})
	return nil
}

// report sorts the values, because they are in no particular order.
func report(_ context.Context, t *kopf.Tick) error {
	tier, _ := t.Spec().String("tier")
	pods := slices.Sorted(slices.Values(podsByLabel.Get(label{t.Namespace(), "tier", tier})))
	t.SetResult(map[string]any{"pods": pods, "images": slices.Sorted(images.Keys())})
	return nil
}

// imagesInUse is a probe. Handlers of the operator as a whole can use the indices, too. The flag
// --liveness=127.0.0.1:8080 turns the health endpoint on, which shows the result.
func imagesInUse(context.Context, *kopf.Activity) (any, error) {
	return slices.Sorted(images.Keys()), nil
}

func main() {
	kex := kopf.Resource("kopfexamples")
	kopf.OnCreate(kex, createFn)
	kopf.Timer(kex, report, kopf.Interval(time.Second)) // an unchanged result is not written again
	kopf.OnProbe(imagesInUse)
	kopf.Main()
}
