package plan

import (
	"reflect"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
)

type m = map[string]any

// A filter of values is about the state, and a filter of labels about the object.
func TestFormerStateHasTheMetadataOfTheObject(t *testing.T) {
	current := object.NewBody(m{
		"apiVersion": "v1", "kind": "K", "metadata": m{"name": "a", "labels": m{"now": "yes"}}, "status": m{"phase": "x"},
		"spec": m{"now": 1}, "data": m{"now": 1},
	})
	before := current.Raw()
	got := bodyAt(current, object.Essence{"metadata": m{"labels": m{"former": "yes"}}, "spec": m{"former": 1}}).Raw()
	want := m{
		"apiVersion": "v1", "kind": "K", "metadata": m{"name": "a", "labels": m{"now": "yes"}}, "status": m{"phase": "x"},
		"spec": m{"former": 1},
	}
	if !reflect.DeepEqual(got, want) || before["data"] == nil {
		t.Errorf("got %v", got)
	}
}
