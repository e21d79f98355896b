package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/diff"
)

func TestDiff(t *testing.T) {
	type input struct {
		Old   any    `json:"old"`
		New   any    `json:"new"`
		Scope string `json:"scope"`
	}
	scopes := map[string]diff.Scope{"FULL": diff.Full, "LEFT": diff.Left, "RIGHT": diff.Right}
	for _, v := range load[input, [][]any](t, "diff") {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "diff", v.Name) {
				return
			}
			scope, known := scopes[v.Input.Scope]
			if !known {
				t.Fatalf("unknown scope %q", v.Input.Scope)
			}
			expectItems(t, diff.Compute(v.Input.Old, v.Input.New, scope), v.Expect)
		})
	}
}

// expectItems compares the differences as a set. Each expected one is a list of the operation,
// the path, and the old and new value.
func expectItems(t *testing.T, got diff.Diff, want [][]any) {
	t.Helper()
	items := make([][]any, 0, len(got))
	for _, item := range got {
		path := make([]any, 0, len(item.Path))
		for _, key := range item.Path {
			path = append(path, key)
		}
		items = append(items, []any{string(item.Op), path, item.Old, item.New})
	}
	if !slices.EqualFunc(sortedDiff(items), sortedDiff(want), func(a, b []any) bool { return diff.Equal(a, b) }) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func sortedDiff(items [][]any) [][]any {
	return slices.SortedFunc(slices.Values(items), func(a, b []any) int {
		return cmp.Or(cmp.Compare(pathText(a[1]), pathText(b[1])), cmp.Compare(fmt.Sprint(a[0]), fmt.Sprint(b[0])))
	})
}

func pathText(path any) string {
	text, _ := json.Marshal(path)
	return string(text)
}
