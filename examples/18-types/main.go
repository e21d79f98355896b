// This example handles objects of Go types in a program of kopf.Main: the resource of the tutorial, with the types
// that kubebuilder projects have, and config maps, whose type belongs to Kubernetes. The example "typed" does the
// same in the manager of another program.
//
// A handler gets the object as a parameter. The compiler knows its fields, and an object that does not fit the type
// is reported instead of handled.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/kopf-go/kopf/examples/typed/api/v1"
	"github.com/kopf-go/kopf/pkg/kopf"
)

func main() {
	// The scheme says which resource a type belongs to. The default scheme has the types of Kubernetes.
	if err := v1.AddToScheme(scheme.Scheme); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	claims := kopf.For[*v1.EphemeralVolumeClaim](kopf.DefaultRegistry)
	claims.Ensure(volume)
	claims.OnCreate(nameVolume)
	claims.OnField("spec.size", logSize)
	kopf.Needs(kopf.Resource("v1", "persistentvolumeclaims"), "get", "list", "watch", "create", "patch", "delete")

	configMaps := kopf.For[*corev1.ConfigMap](kopf.DefaultRegistry)
	configMaps.OnEvent(logKeys, kopf.Labels(map[string]kopf.Matcher{"app": kopf.Equal("claims")}))

	kopf.Main(func(o *kopf.Options) { o.Settings.Name = "claims.kopf.dev" })
}

// volume returns the children of a claim.
func volume(_ context.Context, claim *v1.EphemeralVolumeClaim, _ *kopf.Change) ([]client.Object, error) {
	return []client.Object{&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Size},
			},
		},
	}}, nil
}

// The parameter is a copy. To change the object, pass a function, which gets the latest version. Fields that the Go
// type does not have are kept.
func nameVolume(_ context.Context, claim *v1.EphemeralVolumeClaim, c *kopf.Change) error {
	kopf.Update(c, func(latest *v1.EphemeralVolumeClaim) error {
		latest.Status.PVCName = claim.Name
		return nil
	})
	return nil
}

// DecodeOld returns the object as it was handled last. A new claim has no such state.
func logSize(_ context.Context, claim *v1.EphemeralVolumeClaim, c *kopf.Change) error {
	old := &v1.EphemeralVolumeClaim{}
	found, err := c.DecodeOld(old)
	if err != nil {
		return err
	}
	if !found {
		c.Logger().Info("The claim is new.", "size", claim.Spec.Size.String())
		return nil
	}
	c.Logger().Info("The size has changed.", "from", old.Spec.Size.String(), "to", claim.Spec.Size.String())
	return nil
}

func logKeys(_ context.Context, configMap *corev1.ConfigMap, e *kopf.WatchEvent) error {
	e.Logger().Info("The config map has data.", "keys", len(configMap.Data))
	return nil
}
