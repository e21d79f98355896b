package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// A mutation changes the object by its patch, before it is checked and stored.
func defaultNumbers(_ context.Context, a *kopf.Admission) error {
	if !a.Spec().Has("numbers") {
		a.Patch().Set([]any{1, 2, 3}, "spec", "numbers")
	}
	return nil
}

// Texts are understood, too. What no number can be made of is left for the check,
// which has something to say about it.
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

// A validation admits the object, or rejects it with a message and a code. It must
// not count on other checks having been made: Kubernetes makes all of them at once.
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

// On deletions, the body is what is going to be deleted. This one is called only for
// objects with a label: Kubernetes does not even ask about others.
func keepLocked(_ context.Context, a *kopf.Admission) error {
	return kopf.Reject(fmt.Sprintf("%s is locked. Remove the label first, %s.", a.Name(), a.UserInfo().Username), 423)
}

// The status is a subresource: only handlers that ask for it see its changes.
func checkPhase(_ context.Context, a *kopf.Admission) error {
	if phase, known := a.Status().String("phase"); known && phase != "Ready" && phase != "Pending" {
		return kopf.Reject(fmt.Sprintf("There is no phase %q.", phase), 422)
	}
	return nil
}
