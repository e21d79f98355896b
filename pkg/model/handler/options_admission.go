package handler

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
)

// ReviewOption fits handlers of admission reviews.
type ReviewOption func(*Declaration)

func (o ReviewOption) admission(d *Declaration) { o(d) }

// Operations calls the handler only for these: "CREATE", "UPDATE", "DELETE",
// "CONNECT". By default it is called for all of them; a mutation not for deletions,
// of which nothing can be changed.
//
// Specification: Admission control, "Handler options".
func Operations(operations ...admissionv1.Operation) ReviewOption {
	return func(d *Declaration) {
		if len(operations) == 0 {
			d.addProblem(errors.New("Operations has no operation: name some, or leave it out for all of them"))
		}
		for _, operation := range operations {
			if !slices.Contains(knownOperations, operation) {
				d.addProblem(fmt.Errorf("there is no operation %q, but %q", operation, knownOperations))
			}
		}
		d.Webhook.Operations = append(slices.Clip(d.Webhook.Operations), operations...)
	}
}

var knownOperations = []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect}

// Subresource calls the handler for a subresource, such as "status" or "scale",
// instead of the object itself; "*" for the object and all its subresources.
//
// Specification: Admission control, "Handler options".
func Subresource(name string) ReviewOption {
	return func(d *Declaration) {
		if !subresources.MatchString(name) {
			d.addProblem(fmt.Errorf("there is no subresource %q: name one, such as \"status\", or use \"*\"", name))
		}
		d.Webhook.Subresource = name
	}
}

var subresources = regexp.MustCompile(`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`)

// Persistent keeps the webhook in a managed configuration when the operator exits:
// nothing is admitted then until it is back. By default it is removed.
//
// Specification: Admission control, "Handler options".
func Persistent() ReviewOption { return func(d *Declaration) { d.Webhook.Persistent = true } }

// SideEffects tells Kubernetes that the handler has effects beside its answer. It
// has to leave them in a dry run. By default there are none.
//
// Specification: Admission control, "Handler options".
func SideEffects() ReviewOption { return func(d *Declaration) { d.Webhook.SideEffects = true } }

// IgnoreFailures makes the API server admit requests while it cannot reach the operator. By
// default, it rejects them. If it can reach the operator, the answer of the handler counts
// in any case.
//
// Specification: Admission control, "Handler options".
func IgnoreFailures() ReviewOption { return func(d *Declaration) { d.Webhook.IgnoreFailures = true } }

// The ids that handlers cannot have, for they are paths of a webhook server: of all
// handlers of a kind.
const (
	AllValidating = "validating"
	AllMutating   = "mutating"
)
