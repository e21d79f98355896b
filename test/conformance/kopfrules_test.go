package conformance

import (
	"testing"

	"github.com/kopf-go/kopf/test/kopfrules"
)

// The rules in test/kopfrules are those that were measured on a running Kopf.
func TestRulesOfKopfAreThoseOfKopf(t *testing.T) {
	type input struct {
		Body          map[string]any `json:"body"`
		ExtraFields   []string       `json:"extraFields"`
		IgnoredFields []string       `json:"ignoredFields"`
	}
	type essence struct {
		Essence map[string]any `json:"essence"`
	}
	for _, v := range load[input, essence](t, "essence") {
		sameDocument(t, v.Name, kopfrules.Essence(v.Input.Body, v.Input.ExtraFields, v.Input.IgnoredFields), v.Expect.Essence)
	}
	type observed struct {
		EventType         string `json:"eventType"`
		LastHandled       string `json:"lastHandled"`
		DeletionTimestamp bool   `json:"deletionTimestamp"`
		OwnFinalizer      bool   `json:"ownFinalizer"`
		Initial           bool   `json:"initial"`
	}
	type detected struct {
		Reason string `json:"reason"`
	}
	for _, v := range load[observed, detected](t, "causes") {
		i := v.Input
		if got := kopfrules.Reason(i.EventType, i.DeletionTimestamp, i.OwnFinalizer, i.Initial, i.LastHandled); got != v.Expect.Reason {
			t.Errorf("%s: got %s, want %s", v.Name, got, v.Expect.Reason)
		}
	}
}
