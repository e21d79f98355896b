package kopf_test

import (
	"context"
	"errors"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// The operator leaves the number of replicas to those who change it, and everything that a person
// has changed on a child with a certain annotation. The rest is restored.
func ExampleOnDrift() {
	shopFn := func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{webOf(c)}, nil
	}
	kopf.Ensure(kopf.Resource("shops"), shopFn, kopf.ID("driftingShopFn"))

	driftFn := func(_ context.Context, c *kopf.Drift) (kopf.Resolution, error) {
		if c.Deleted() {
			return kopf.RestoreDrift(), nil // nothing else is possible
		}
		if _, isFrozen := c.Child().Annotations()["example.com/hands-off"]; isFrozen {
			return kopf.AcceptDrift(), nil
		}
		for _, field := range c.Fields() {
			if strings.HasPrefix(field.Manager, "kubectl") {
				return kopf.Resolution{}, kopf.Permanent(errors.New("ask for the annotation first: " + field.String()))
			}
		}
		return kopf.AcceptFields("spec.replicas"), nil
	}
	kopf.OnDrift(kopf.Resource("shops"), driftFn, kopf.ID("driftFn"), kopf.EnsuredBy("driftingShopFn"))
}
