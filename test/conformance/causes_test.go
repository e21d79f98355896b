package conformance

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
)

func TestCauses(t *testing.T) {
	type input struct {
		EventType         string `json:"eventType"`
		DeletionTimestamp bool   `json:"deletionTimestamp"`
		OwnFinalizer      bool   `json:"ownFinalizer"`
		LastHandled       string `json:"lastHandled"`
		Initial           bool   `json:"initial"`
	}
	type expect struct {
		Reason  cause.Reason `json:"reason"`
		Initial bool         `json:"initial"`
	}
	changes := map[string]cause.Change{"none": cause.Never, "same": cause.Same, "changed": cause.Changed}
	for _, v := range load[input, expect](t, "causes") {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "causes", v.Name) {
				return
			}
			reason, initial := cause.Detect(cause.Observation{
				Gone:     v.Input.EventType == "DELETED",
				Deleting: v.Input.DeletionTimestamp,
				Held:     v.Input.OwnFinalizer,
				Change:   changes[v.Input.LastHandled],
				Initial:  v.Input.Initial,
			})
			if got := (expect{reason, initial}); got != v.Expect {
				t.Errorf("%+v: got %+v, want %+v", v.Input, got, v.Expect)
			}
		})
	}
}
