package converge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The log says what others have done, as far as it is known without a request.
func TestLinesAboutWhatOthersHaveDone(t *testing.T) {
	many := map[string]any{}
	for i := range mostNamed + 2 {
		many[fmt.Sprint("k", i)] = "v"
	}
	for name, test := range map[string]struct {
		disturb func(o *operator)
		want    string
	}{
		"a field is changed": {func(o *operator) {
			u := o.objects["one"]
			u.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: "kopf-test", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{},"f:annotations":{},"f:ownerReferences":{}}}`)},
				{Manager: "other", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)},
			})
			u.SetResourceVersion("400")
			o.show(u)
		}, `"The child was changed by another client, and is restored." "child"="ConfigMap ns/one" "fields"=["data.a"]`},
		"it is deleted": {func(o *operator) {
			gone := o.objects["one"]
			delete(o.objects, "one")
			o.observe(readFact(gone, "kopf-test"), true)
		}, `"The child was deleted by another client, and is created again." "child"="ConfigMap ns/one"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
			var lines []string
			o.log = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
			if _, err := o.step(t); err != nil {
				t.Fatal(err)
			}
			o.show(o.objects["one"])
			test.disturb(o)
			if _, err := o.step(t); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, test.want) }) {
				t.Errorf("got the lines %q", lines)
			}
		})
	}
	d := &fact{}
	d.details.Store(&details{fields: []byte(`{}`)})
	if names := nameLost(d, map[string]any{"data": many}); len(names) != mostNamed+1 || names[mostNamed] != "and others" {
		t.Errorf("got %q", names)
	}
	if names := nameLost(&fact{}, map[string]any{"data": many}); names != nil {
		t.Errorf("got %q of a child that was judged before", names)
	}
}
