package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// A mutating handler changes the object with its patch, before it is validated and
// stored.
func defaultNumbers(_ context.Context, a *kopf.Admission) error {
	if !a.Spec().Has("numbers") {
		a.Patch().Set([]any{1, 2, 3}, "spec", "numbers")
	}
	return nil
}

// Strings are converted to numbers. Values that cannot be converted are left to the
// validation, which rejects them with a message.
func convertNumbers(_ context.Context, a *kopf.Admission) error {
	numbers, _ := a.Spec().List("numbers")
	for i, number := range numbers {
		text, isText := number.(string)
		if converted, err := strconv.ParseFloat(text, 64); isText && err == nil {
			numbers[i] = converted
			a.Warn(fmt.Sprintf("%q was converted to a number.", text))
		}
	}
	if len(numbers) > 0 {
		a.Patch().Set(numbers, "spec", "numbers")
	}
	return nil
}

// A validating handler admits the object, or rejects it with a message and a code. It
// must not rely on other validating handlers: Kubernetes calls all of them at once.
func checkNumbers(_ context.Context, a *kopf.Admission) error {
	numbers, isList := a.Spec().List("numbers")
	if !isList {
		return kopf.Reject("The numbers must be a list.", 422)
	}
	for i := range numbers {
		switch number := numbers[i].(type) {
		case int64, float64:
			if value := fmt.Sprint(number); tooLarge(value) {
				return kopf.Reject(fmt.Sprintf("The number %s is not between 0 and 100.", value), 422)
			}
		default:
			return kopf.Reject(fmt.Sprintf("%v is not a number.", number), 422)
		}
	}
	return nil
}

func tooLarge(text string) bool {
	number, err := strconv.ParseFloat(text, 64)
	return err != nil || number < 0 || number > 100
}

// For a deletion, the body is the object that will be deleted. This handler is called
// only for objects with the label: Kubernetes sends no reviews for others.
func keepLocked(_ context.Context, a *kopf.Admission) error {
	return kopf.Reject(fmt.Sprintf("%s is locked. Remove the label first, %s.", a.Name(), a.UserInfo().Username), 423)
}

// The status is a subresource: only handlers that are declared for it see its changes.
func checkPhase(_ context.Context, a *kopf.Admission) error {
	if phase, known := a.Status().String("phase"); known && phase != "Ready" && phase != "Pending" {
		return kopf.Reject(fmt.Sprintf("The phase %q does not exist.", phase), 422)
	}
	return nil
}

// A handler with side effects must declare them, and must not have any in a dry run, which
// stores nothing. The log stands for a system that keeps a journal.
func recordRequest(_ context.Context, a *kopf.Admission) error {
	if a.DryRun() { // kubectl create --dry-run=server
		a.Warn("This is a dry run: the request is not recorded.")
		return nil
	}
	a.Logger().Info("The request is recorded.", "operation", a.Operation(), "user", a.UserInfo().Username)
	return nil
}

// The headers and the certificate belong to the API server that calls the operator, or to
// another client; UserInfo is the user who has sent the request to the API server. There is a
// certificate only if the client has one, and if the server could verify it: see main.
func identifyCaller(_ context.Context, a *kopf.Admission) error {
	if peer := a.TLSPeer(); peer == nil {
		a.Warn("The TLS peer is not identified.")
	} else {
		a.Warn(fmt.Sprintf("The TLS peer is %s.", peer.Subject.CommonName))
	}
	a.Warn(fmt.Sprintf("The user agent is %s.", a.Headers().Get("User-Agent")))
	scheme, _, _ := strings.Cut(a.Headers().Get("Authorization"), " ") // the rest is secret
	if scheme == "" {
		scheme = "absent"
	}
	a.Warn(fmt.Sprintf("The authorization is %s.", scheme))
	return nil
}
