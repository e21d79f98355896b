package cause_test

import (
	"fmt"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
)

func TestDetect(t *testing.T) {
	type observed = cause.Observation
	tests := map[string]struct {
		observed observed
		reason   cause.Reason
		initial  bool
	}{
		"it was never handled": {observed{}, cause.Create, false},
		"it was never handled, and is older than the operator": {
			observed{Initial: true}, cause.Create, false,
		},
		"it has changed":                          {observed{Change: cause.Changed}, cause.Update, false},
		"it has changed while no operator ran":    {observed{Change: cause.Changed, Initial: true}, cause.Update, true},
		"nothing has changed":                     {observed{Change: cause.Same}, cause.NoOp, false},
		"the operator sees it for the first time": {observed{Change: cause.Same, Initial: true}, cause.Resume, true},
		"it is being deleted, and has our finalizer": {
			observed{Deleting: true, Held: true, Change: cause.Same}, cause.Delete, false,
		},
		"its deletion began before the operator started": {
			observed{Deleting: true, Held: true, Change: cause.Same, Initial: true}, cause.Delete, true,
		},
		"it was changed and is being deleted":              {observed{Deleting: true, Held: true, Change: cause.Changed}, cause.Delete, false},
		"it is being deleted before it was ever handled":   {observed{Deleting: true, Held: true}, cause.Delete, false},
		"it is being deleted, with other finalizers":       {observed{Deleting: true, Change: cause.Same}, cause.Free, false},
		"it is being deleted, never handled, no finalizer": {observed{Deleting: true}, cause.Free, false},
		"it has our finalizer but is not being deleted":    {observed{Held: true, Change: cause.Same}, cause.NoOp, false},
		"it is gone": {observed{Gone: true}, cause.Gone, false},
		"it is gone, and was not seen by this process":                   {observed{Gone: true, Initial: true}, cause.Gone, true},
		"it is being deleted, with other finalizers, for the first time": {observed{Deleting: true, Initial: true}, cause.Free, true},
		"it is gone, although the state has our finalizer":               {observed{Gone: true, Deleting: true, Held: true}, cause.Gone, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reason, initial := cause.Detect(test.observed)
			if reason != test.reason || initial != test.initial {
				t.Errorf("got %q, %v, want %q, %v", reason, initial, test.reason, test.initial)
			}
		})
	}
}

func TestHandledReasons(t *testing.T) {
	tests := map[cause.Reason]struct {
		handled bool
		noun    string
	}{
		cause.Create: {true, "creation"},
		cause.Update: {true, "update"},
		cause.Delete: {true, "deletion"},
		cause.Resume: {true, "resuming"},
		cause.NoOp:   {false, "noop"},
		cause.Free:   {false, "free"},
		cause.Gone:   {false, "gone"},
		"":           {false, ""},
	}
	for reason, test := range tests {
		t.Run(string(reason), func(t *testing.T) {
			if reason.Handled() != test.handled || reason.Noun() != test.noun {
				t.Errorf("got %v, %q", reason.Handled(), reason.Noun())
			}
		})
	}
}

func ExampleDetect() {
	reason, initial := cause.Detect(cause.Observation{Change: cause.Changed, Initial: true})
	fmt.Println(reason, initial)
	// Output: update true
}
