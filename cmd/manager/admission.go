package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// admission declares the admission handlers, and tells how the API servers reach them:
// by the service that the environment names. config/webhook is what names one; without
// it there are no such handlers, for there is nobody who could ask them.
func admission(examples kopf.Selector) (func(*kopf.Settings), error) {
	namespace, service, found := strings.Cut(os.Getenv("WEBHOOK_SERVICE"), "/")
	if !found {
		return func(*kopf.Settings) {}, nil
	}
	host, text, _ := strings.Cut(os.Getenv("WEBHOOK_ADDRESS"), ":")
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("the environment variable WEBHOOK_ADDRESS is to be like %q: %w", ":9443", err)
	}
	kopf.OnMutate(examples, paint, kopf.Operations("CREATE"))
	kopf.OnValidate(examples, check, kopf.Operations("CREATE", "UPDATE"), kopf.Field("spec"))
	return func(s *kopf.Settings) {
		s.Admission.Managed = "manager.kopf.dev"
		s.Admission.Server = kopf.WebhookServer{
			Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: service, Port: ptr.To(int32(port))},
			Secret:  namespace + "/" + service, // the replicas share the certificate
			Addr:    host, Port: int(port),
		}
	}, nil
}

// paint gives a colour to what has none.
func paint(_ context.Context, a *kopf.Admission) error {
	if !a.Spec().Has("colour") {
		a.Patch().Set("grey", "spec", "colour")
	}
	return nil
}

// check rejects fields that a ConfigMap cannot have. What is there already may stay, or
// the object could not even be released for its deletion.
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
