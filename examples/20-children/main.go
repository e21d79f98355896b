// This example is a web shop that consists of four children: a deployment, a service, a config
// map, and a claim for its data.
//
// The handler returns them as they should be, and the operator makes it so: it creates and
// changes them, restores what other clients have changed, and deletes what is not returned
// anymore. Except for the claim: without the data, there is no shop.
package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func main() {
	kopf.Ensure(kopf.Resource("kopfexamples"), shop, kopf.Retries(10))
	for _, child := range []kopf.Selector{
		kopf.Resource("apps", "v1", "deployments"), kopf.Resource("v1", "services"), kopf.Resource("v1", "configmaps"), kopf.Resource("v1", "persistentvolumeclaims"),
	} {
		kopf.Needs(child, "get", "list", "watch", "create", "patch", "delete")
	}
	kopf.Main(func(o *kopf.Options) { o.Settings.Name = "shop.kopf.dev" })
}

// shop returns the children of a shop. It leaves out the number of replicas, which belongs to
// an autoscaler, or to the person who runs kubectl scale.
func shop(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	children := []client.Object{deployment(c), service(c), theme(c)}
	if withData, given := c.Spec().Bool("data"); withData || !given {
		children = append(children, claim(c))
	}
	return children, nil
}

func deployment(c *kopf.Change) *appsv1.Deployment {
	labels := map[string]string{"shop": c.Name()}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name()},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "web", Image: "nginx", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				}}},
			},
		},
	}
}

func service(c *kopf.Change) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name()},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"shop": c.Name()},
			Ports:    []corev1.ServicePort{{Port: 80}},
		},
	}
}

func theme(c *kopf.Change) *corev1.ConfigMap {
	color, given := c.Spec().String("color")
	if !given {
		color = "blue"
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-theme"},
		Data:       map[string]string{"color": color},
	}
}

// claim has the data of the shop. Without kopf.Prune, the operator never deletes a claim.
func claim(c *kopf.Change) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}
