package diff_test

import (
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func ExampleCompute() {
	before := map[string]any{"metadata": map[string]any{
		"labels": map[string]any{"tier": "web", "owner": "ann"},
	}, "spec": map[string]any{"size": "1G"}}
	after := map[string]any{"metadata": map[string]any{
		"labels": map[string]any{"tier": "db", "zone": "a"},
	}, "spec": map[string]any{"size": "1G"}}

	for _, item := range diff.Compute(before, after, diff.Full) {
		fmt.Println(item)
	}
	// Output:
	// remove metadata.labels.owner: "ann"
	// change metadata.labels.tier: "web" -> "db"
	// add metadata.labels.zone: "a"
}

// The handler of a field gets the differences of that field. Here, it converts them to a
// merge patch for a child: the value of a removed label is nil, which removes the label.
func ExampleDiff_Reduce() {
	before := map[string]any{"metadata": map[string]any{
		"labels": map[string]any{"tier": "web", "owner": "ann"},
	}}
	after := map[string]any{"metadata": map[string]any{
		"labels": map[string]any{"tier": "db"},
	}, "spec": map[string]any{"size": "1G"}}

	labels := map[string]any{}
	for _, item := range diff.Compute(before, after, diff.Full).Reduce(object.Path{"metadata", "labels"}) {
		if len(item.Path) == 1 {
			labels[item.Path[0]] = item.New
		}
	}
	fmt.Println(labels)
	// Output: map[owner:<nil> tier:db]
}

// The Left scope ignores fields that were added to the object.
func ExampleCompute_left() {
	wanted := map[string]any{"replicas": int64(3)}
	actual := map[string]any{"replicas": 3.0, "paused": false}

	fmt.Println(diff.Compute(wanted, actual, diff.Left))
	fmt.Println(diff.Compute(wanted, actual, diff.Full))
	// Output:
	// no changes
	// add paused: false
}
