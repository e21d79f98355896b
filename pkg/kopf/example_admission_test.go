package kopf_test

import (
	"context"
	"os"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// A validation rejects invalid objects. The user sees its error.
func ExampleOnValidate() {
	check := func(_ context.Context, a *kopf.Admission) error {
		if size, _ := a.Spec().String("size"); size == "" {
			return kopf.Reject("spec.size must be set", 422)
		}
		if a.Labels()["tier"] == "" {
			a.Warn("without the label tier the volume is not backed up")
		}
		return nil
	}
	kopf.OnValidate(volumeclaims, check, kopf.ID("check"), kopf.Operations("CREATE", "UPDATE"))
}

// A mutation sets missing fields before the API server stores the object.
func ExampleOnMutate() {
	complete := func(_ context.Context, a *kopf.Admission) error {
		if _, given := a.Spec().String("size"); !given {
			a.Patch().Set("1Gi", "spec", "size")
		}
		return nil
	}
	kopf.OnMutate(volumeclaims, complete, kopf.ID("complete"), kopf.Operations("CREATE"))
}

// An admission server in a pod, behind a service. It generates the certificate, and stores it
// in a Secret for all replicas.
func ExampleOnStartup_admissionServer() {
	kopf.OnStartup(func(_ context.Context, s *kopf.Startup) error {
		s.Settings().Admission.Server = servers.Server{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "operators", Name: "webhooks"},
			Secret:  "operators/webhooks",
		}
		s.Settings().Admission.Managed = "volumes.example.com"
		return nil
	}, kopf.ID("serve"))
}

// A login handler returns credentials that expire.
func ExampleOnLogin() {
	login := func(context.Context, *kopf.Activity) (*login.Connection, error) {
		token, err := os.ReadFile("/run/company/token")
		if err != nil {
			return nil, kopf.Temporary(err, 10*time.Second)
		}
		return &login.Connection{
			Config:  &rest.Config{Host: "https://cluster.example.com", BearerToken: string(token)},
			Expires: time.Now().Add(time.Hour),
		}, nil
	}
	kopf.OnLogin(login, kopf.ID("company"), kopf.Retries(10))
}
