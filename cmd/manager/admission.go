package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// admission declares the admission handlers, and makes the settings by which the API
// servers reach them: through the service that the environment names. config/webhook
// names one; without it no such handlers are declared, because nothing could call them.
func admission(o *kopf.Options, examples kopf.Selector) error {
	namespace, service, found := strings.Cut(os.Getenv("WEBHOOK_SERVICE"), "/")
	if !found {
		return nil
	}
	host, text, _ := strings.Cut(os.Getenv("WEBHOOK_ADDRESS"), ":")
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf("the environment variable WEBHOOK_ADDRESS must have the form %q: %w", ":9443", err)
	}
	o.Registry.OnMutate(examples, paint, kopf.Operations("CREATE"))
	o.Registry.OnValidate(examples, check, kopf.Operations("CREATE", "UPDATE"), kopf.Field("spec"))
	server := servers.Server{
		Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: service, Port: new(int32(port))},
		Addr:    host, Port: int(port),
	}
	if dir := os.Getenv("WEBHOOK_CERT_DIR"); dir != "" { // config/certmanager mounts it
		server.CertFile, server.KeyFile, server.CAFile = dir+"/tls.crt", dir+"/tls.key", dir+"/ca.crt"
	} else {
		server.Secret = namespace + "/" + service // the replicas share the certificate
	}
	o.Settings.Admission.Managed = "manager.kopf.dev"
	o.Settings.Admission.Server = server
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
