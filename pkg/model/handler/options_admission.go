package handler

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
)

// ReviewOption is an option of admission handlers.
type ReviewOption func(*Declaration)

func (o ReviewOption) admission(d *Declaration) { o(d) }

// Operations restricts the handler to the operations: "CREATE", "UPDATE", "DELETE",
// "CONNECT". By default, it is called for all operations, except that mutating handlers
// are not called for deletions.
//
// Specification: Admission control, "Handler options".
func Operations(operations ...admissionv1.Operation) ReviewOption {
	return func(d *Declaration) {
		if len(operations) == 0 {
			d.addProblem(errors.New("Operations has no operations: add some, or leave it out to select all"))
		}
		for _, operation := range operations {
			if !slices.Contains(knownOperations, operation) {
				d.addProblem(fmt.Errorf("unknown operation %q: use one of %q", operation, knownOperations))
			}
		}
		d.Webhook.Operations = append(slices.Clip(d.Webhook.Operations), operations...)
	}
}

var knownOperations = []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect}

// Subresource calls the handler for a subresource, such as "status" or "scale", instead
// of the object itself. "*" selects the object and all its subresources.
//
// Specification: Admission control, "Handler options".
func Subresource(name string) ReviewOption {
	return func(d *Declaration) {
		if !subresources.MatchString(name) {
			d.addProblem(fmt.Errorf("invalid subresource %q: specify one, such as \"status\", or use \"*\"", name))
		}
		d.Webhook.Subresource = name
	}
}

var subresources = regexp.MustCompile(`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`)

// Persistent keeps the webhook in a managed configuration when the operator exits, so
// that matching requests are rejected until it is running again. By default, the webhook
// is removed.
//
// Specification: Admission control, "Handler options".
func Persistent() ReviewOption { return func(d *Declaration) { d.Webhook.Persistent = true } }

// SideEffects tells Kubernetes that the handler has side effects, which it must avoid in
// dry runs. By default, handlers have none.
//
// Specification: Admission control, "Handler options".
func SideEffects() ReviewOption { return func(d *Declaration) { d.Webhook.SideEffects = true } }

// IgnoreFailures makes the API server admit requests while the operator is unreachable.
// By default, it rejects them. If the operator is reachable, the response of the handler
// always counts.
//
// Specification: Admission control, "Handler options".
func IgnoreFailures() ReviewOption { return func(d *Declaration) { d.Webhook.IgnoreFailures = true } }

// reservedIDs cannot be ids of handlers, because they are paths that call all handlers
// of a kind.
const (
	AllValidating = "validating"
	AllMutating   = "mutating"
)
