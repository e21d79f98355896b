package patch_test

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/patch"
)

func show(merge map[string]any, err error) {
	text, _ := json.Marshal(merge)
	fmt.Println(string(text), err)
}

func ExamplePatch() {
	object := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"tier": "web"}},
		"spec":     map[string]any{"size": int64(1), "mode": "slow"},
	}

	var p patch.Patch // in a handler: c.Patch()
	p.Set(1, "spec", "size")
	p.Remove("spec", "mode")
	p.SetLabel("tier", "db")
	p.Merge(map[string]any{"status": map[string]any{"phase": "Ready"}})

	show(p.Resolve(object)) // the size is 1 already
	// Output: {"metadata":{"labels":{"tier":"db"}},"spec":{"mode":null},"status":{"phase":"Ready"}} <nil>
}

// A transformation works on the object as it is when the patch is sent. It adds
// to the list only what is not there, and so can be repeated.
func ExamplePatch_Apply() {
	var p patch.Patch
	p.Apply(func(obj *unstructured.Unstructured) error {
		zones, _, err := unstructured.NestedStringSlice(obj.Object, "spec", "zones")
		if err != nil || slices.Contains(zones, "b") {
			return err
		}
		return unstructured.SetNestedStringSlice(obj.Object, append(zones, "b"), "spec", "zones")
	})

	stale := map[string]any{"spec": map[string]any{"zones": []any{"a"}}}
	fresh := map[string]any{"spec": map[string]any{"zones": []any{"a", "c"}}}
	done := map[string]any{"spec": map[string]any{"zones": []any{"b"}}}
	show(p.Resolve(stale))
	show(p.Resolve(fresh))
	show(p.Resolve(done))
	// Output:
	// {"spec":{"zones":["a","b"]}} <nil>
	// {"spec":{"zones":["a","c","b"]}} <nil>
	// null <nil>
}

// Mistakes come to light when the patch is resolved, and name the field.
func ExampleFieldError() {
	var p patch.Patch
	p.Set("another", "metadata", "name")
	_, err := p.Resolve(map[string]any{"metadata": map[string]any{"name": "one"}})
	fmt.Println(err)
	// Output: the patch of the field "metadata.name" cannot be made: handlers must not change it: leave it out of the patch
}

func ExampleDifference() {
	from := map[string]any{"a": "same", "b": "gone", "c": map[string]any{"d": "old"}}
	to := map[string]any{"a": "same", "c": map[string]any{"d": "new"}}
	show(patch.Difference(from, to), nil)
	// Output: {"b":null,"c":{"d":"new"}} <nil>
}

func ExampleMinimal() {
	body := map[string]any{"a": "same", "c": map[string]any{"d": "old"}}
	merge := map[string]any{"a": "same", "b": nil, "c": map[string]any{"d": "new"}}
	show(patch.Minimal(body, merge), nil)
	// Output: {"c":{"d":"new"}} <nil>
}

func ExampleOperations() {
	body := map[string]any{"spec": map[string]any{"mode": "slow"}}
	var p patch.Patch
	p.Remove("spec", "mode")
	wanted, err := p.Applied(body)
	if err != nil {
		fmt.Println(err)
	}
	operations, err := patch.Operations(body, wanted)
	for _, operation := range operations {
		fmt.Println(operation.Operation, operation.Path, err)
	}
	// Output: remove /spec/mode <nil>
}
