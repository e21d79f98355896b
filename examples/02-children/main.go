// This example creates children of the handled object: a typed job and an unstructured pod.
//
// Adopt sets the namespace, the labels, and the owner of the children, so that Kubernetes
// deletes them together with the object. With Strict, it also gives them the name of the
// object. A handler can be called again after a crash: because the names are fixed, it finds
// the existing children, and does not create more.
//
// The garbage collector of Kubernetes deletes the children. The temporary control plane of
// `make run` has none, so the children stay there.
package main

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/kopf"
)

func createJob(ctx context.Context, c *kopf.Change) error {
	job := &batchv1.Job{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "main", Image: "busybox", Command: []string{"sleep", duration(c)}}},
	}}}}
	// The pods of the job also get the labels.
	if err := hierarchy.Adopt(ctx, job, hierarchy.Strict(), hierarchy.Nested("spec.template")); err != nil {
		return err
	}
	c.SetResult(map[string]any{"job-name": job.Name})
	return client.IgnoreAlreadyExists(c.Client().Create(ctx, job))
}

func createPod(ctx context.Context, c *kopf.Change) error {
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Pod",
		"spec": map[string]any{
			"containers": []any{map[string]any{
				"name": "main", "image": "busybox", "command": []any{"sleep", duration(c)},
			}},
		},
	}}
	if err := hierarchy.Adopt(ctx, pod, hierarchy.Strict()); err != nil {
		return err
	}
	c.SetResult(map[string]any{"pod-name": pod.GetName()})
	return client.IgnoreAlreadyExists(c.Client().Create(ctx, pod))
}

// joinGroup makes the object itself a child, of a ConfigMap with the name in spec.group.
// Kubernetes deletes all objects of the group together with the ConfigMap.
func joinGroup(ctx context.Context, c *kopf.Change) error {
	name, _ := c.Spec().String("group")
	group := &corev1.ConfigMap{}
	if err := c.Client().Get(ctx, client.ObjectKey{Namespace: c.Namespace(), Name: name}, group); err != nil {
		return err
	}
	return hierarchy.AppendOwner(ctx, c, group, hierarchy.NotController())
}

func duration(c *kopf.Change) string {
	if duration, ok := c.Spec().String("duration"); ok {
		return duration
	}
	return "1m"
}

func main() {
	kopf.OnCreate(kopf.Resource("kopfexamples"), createJob)
	kopf.OnCreate(kopf.Resource("kopfexamples"), createPod)
	kopf.OnCreate(kopf.Resource("kopfexamples"), joinGroup, kopf.Field("spec.group"))
	kopf.Needs(kopf.Resource("batch", "v1", "jobs"), "create") // what the handlers do with the client
	kopf.Needs(kopf.Resource("v1", "pods"), "create")
	kopf.Needs(kopf.Resource("v1", "configmaps"), "get")
	kopf.Main()
}
