package plan

import "testing"

// The API server rejects a new finalizer on an object that is being deleted.
func TestFinalizerIsAddedWhereItIsNeededAndPossible(t *testing.T) {
	tests := map[string]struct {
		plan Plan
		want bool
	}{
		"it is missing":               {Plan{NeedsFinalizer: true}, true},
		"it is there":                 {Plan{NeedsFinalizer: true, HasFinalizer: true}, false},
		"it is not needed":            {Plan{}, false},
		"the object is being deleted": {Plan{NeedsFinalizer: true, Deleting: true}, false},
	}
	for name, test := range tests {
		if got := test.plan.MustAddFinalizer(); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
