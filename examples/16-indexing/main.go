// Indices: what an operator knows of other objects, in memory, by keys. Handlers
// look it up instead of asking the API server.
//
// An index is filled from all objects before any handler is called, and kept up to
// date from then on. Objects that are only indexed are not touched.
package main

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// Keys are of any comparable type. Several pods can have something under one key,
// and one pod under several keys: under as many as it has labels.
type label struct{ namespace, key, value string }

var podsByLabel = kopf.NewIndex(nil, kopf.Resource("v1", "pods"), byLabel, kopf.When(isAlive))

func byLabel(_ context.Context, i *kopf.Indexed) (map[label]string, error) {
	names := map[label]string{}
	for key, value := range i.Labels() {
		names[label{i.Namespace(), key, value}] = i.Name()
	}
	return names, nil
}

// Pods that do not match the filters any more are taken out.
func isAlive(pod kopf.Arguments) bool {
	phase, _ := pod.Status().String("phase")
	return phase != "Succeeded" && phase != "Failed"
}

// With Go types. The values here are of no interest: the keys are a set of images.
// What this returns for one pod replaces what it has returned for it before.
var images = kopf.NewIndexOf(kopf.For[*corev1.Pod](nil), byImage)

func byImage(_ context.Context, i *kopf.IndexedOf[*corev1.Pod]) (map[string]struct{}, error) {
	set := map[string]struct{}{}
	for _, container := range i.Object().Spec.Containers {
		set[container.Image] = struct{}{}
	}
	return set, nil
}

// All pods are known, though the object may have been there before the operator.
func createFn(_ context.Context, c *kopf.Change) error {
	tier, _ := c.Spec().String("tier")
	c.SetResult(map[string]any{"pods": len(podsByLabel.Get(label{c.Namespace(), "tier", tier}))})
	return nil
}

// Values are in no particular order.
func report(_ context.Context, t *kopf.Tick) error {
	tier, _ := t.Spec().String("tier")
	pods := slices.Sorted(slices.Values(podsByLabel.Get(label{t.Namespace(), "tier", tier})))
	t.SetResult(map[string]any{"pods": pods, "images": slices.Sorted(images.Keys())})
	return nil
}

func main() {
	kex := kopf.Resource("kopfexamples")
	kopf.OnCreate(kex, createFn)
	kopf.Timer(kex, report, kopf.Interval(time.Second)) // what is there already is not written again
	kopf.Main()
}
