package conformance

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestDiffField(t *testing.T) {
	type input struct {
		Old  any         `json:"old"`
		New  any         `json:"new"`
		Path object.Path `json:"path"`
	}
	type expect struct {
		Old  any     `json:"old"`
		New  any     `json:"new"`
		Diff [][]any `json:"diff"`
	}
	for _, v := range load[input, expect](t, "diff_field") {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "diff_field", v.Name) {
				return
			}
			whole := diff.Compute(v.Input.Old, v.Input.New, diff.Full)
			expectItems(t, whole.Reduce(v.Input.Path), v.Expect.Diff)

			before, _ := object.Lookup(v.Input.Old, v.Input.Path)
			after, _ := object.Lookup(v.Input.New, v.Input.Path)
			expectItems(t, diff.Compute(before, after, diff.Full), v.Expect.Diff)
			if !diff.Equal(before, v.Expect.Old) || !diff.Equal(after, v.Expect.New) {
				t.Errorf("got %v -> %v, want %v -> %v", before, after, v.Expect.Old, v.Expect.New)
			}
		})
	}
}
