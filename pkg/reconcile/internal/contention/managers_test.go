package contention

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestWhoHasWrittenAField(t *testing.T) {
	at := func(second int, name, fields string) metav1.ManagedFieldsEntry {
		time := metav1.NewTime(time.Unix(int64(second), 0))
		return metav1.ManagedFieldsEntry{Manager: name, Time: &time, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	managers := []metav1.ManagedFieldsEntry{
		at(1, "kubectl", `{"f:spec":{".":{},"f:x":{},"f:y":{}}}`),
		at(3, "later", `{"f:spec":{"f:y":{}},"f:metadata":{"f:finalizers":{".":{},"v:\"a\"":{}},"f:annotations":{"f:a/b":{}}}}`),
		at(2, "earlier", `{"f:spec":{"f:y":{}}}`),
		{Manager: "nothing"},
		at(9, "broken", `{`),
	}
	tests := map[string]struct {
		fields []object.Path
		want   string
	}{
		"the only one":           {[]object.Path{{"spec", "x"}}, "kubectl"},
		"the last of several":    {[]object.Path{{"spec", "y"}}, "later"},
		"of one of the fields":   {[]object.Path{{"spec", "z"}, {"spec", "x"}}, "kubectl"},
		"an annotation":          {[]object.Path{{"metadata", "annotations", "a/b"}}, "later"},
		"a list":                 {[]object.Path{{"metadata", "finalizers"}}, "later"},
		"nobody, it is not ours": {[]object.Path{{"status"}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if culprit := Culprit(managers, test.fields); culprit != nil {
				got = culprit.Manager
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
