// This example decides about what others change in the children of an object.
//
// The operator keeps a config map. A person may change its colors with kubectl edit, for a try:
// that is accepted, and noted in the status, until the object asks for another color. Whatever
// else is changed, or changed by a program, is restored; so is a config map that was deleted.
package main

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func main() {
	examples := kopf.Resource("kopfexamples")
	kopf.Ensure(examples, theme)
	kopf.OnDrift(examples, tryOut)
	kopf.Needs(kopf.Resource("v1", "configmaps"), "get", "list", "watch", "create", "patch", "delete")
	kopf.Main(func(o *kopf.Options) { o.Settings.Name = "theme.kopf.dev" })
}

// theme returns the config map of an object.
func theme(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	color, given := c.Spec().String("color")
	if !given {
		color = "blue"
	}
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-theme"},
		Data:       map[string]string{"color": color, "font": "serif"},
	}}, nil
}

// tryOut accepts the changes of people.
func tryOut(_ context.Context, c *kopf.Drift) (kopf.Resolution, error) {
	if c.Deleted() {
		c.Logger().Info("The theme was deleted, and is created again.", "child", c.Key().Name)
		return kopf.RestoreDrift(), nil
	}
	for _, field := range c.Fields() {
		c.Logger().Info("The theme was changed.", "field", field.Path, "manager", field.Manager, "since", field.Since)
	}
	color, changed := c.Field("data.color")
	if !changed || !strings.HasPrefix(color.Manager, "kubectl") {
		return kopf.RestoreDrift(), nil
	}
	c.Patch().Set(color.Found.Any(), "status", "tried")
	return kopf.AcceptFields(color.Path), nil
}
