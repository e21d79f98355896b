package main

//go:generate go run . manifests --crds ../../config/crd/example --samples ../../config/samples --with metrics,webhook --image registry.example.com/kopf-manager:v0.1.0 --olm ../../config/olm

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// admission declares the admission handlers, if the environment says how the API servers reach them: config/webhook does.
// Without it no such handlers are declared, because nothing could call them.
func admission(o *kopf.Options, examples kopf.Selector) error {
	found, err := servers.FromEnvironment(&o.Settings.Admission, "manager.kopf.dev")
	if err != nil || !found {
		return err
	}
	o.Registry.OnMutate(examples, paint, kopf.Operations("CREATE"))
	o.Registry.OnValidate(examples, check, kopf.Operations("CREATE", "UPDATE"), kopf.Field("spec"))
	return nil
}

// paint adds a color to objects without one.
func paint(_ context.Context, a *kopf.Admission) error {
	if !a.Spec().Has("color") {
		a.Patch().Set("grey", "spec", "color")
	}
	return nil
}

// check rejects fields that a ConfigMap cannot have. Updates that leave the spec alone are
// admitted; otherwise an object with such a field could not be deleted, which takes an
// update of its finalizers.
func check(_ context.Context, a *kopf.Admission) error {
	if len(a.Diff()) == 0 {
		return nil
	}
	for _, field := range a.Spec().Keys() {
		if faults := validation.IsConfigMapKey(field); len(faults) > 0 {
			return kopf.Reject(fmt.Sprintf("The field %q of the spec cannot be in a ConfigMap: %s.", field, faults[0]), 422)
		}
	}
	return nil
}
