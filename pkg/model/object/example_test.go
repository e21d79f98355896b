package object_test

import (
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/object"
)

func example() *object.Body {
	snapshot, err := object.ParseSnapshot([]byte(`{
		"metadata": {"name": "db", "labels": {"example.com/role": "primary"}},
		"spec": {"size": 3, "template": {"image": "postgres", "ports": [5432]}}
	}`))
	if err != nil {
		fmt.Println(err)
		return object.NewBody(nil)
	}
	return snapshot.Body()
}

func ExampleView() {
	spec := example().Spec()
	size, ok := spec.Int64("size")
	fmt.Println(size, ok)
	image, ok := spec.String("template", "image")
	fmt.Println(image, ok)
	// A chain of views never fails, whatever is missing.
	_, ok = spec.View("storage").View("class").String("name")
	fmt.Println(ok)
	// Output:
	// 3 true
	// postgres true
	// false
}

func ExampleView_Decode() {
	var template struct {
		Image string `json:"image"`
		Ports []int  `json:"ports"`
	}
	if err := example().Spec().Decode(&template, "template"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(template.Image, template.Ports)
	// Output: postgres [5432]
}

func ExampleBody_Lookup() {
	role, found := example().Lookup(object.Path{"metadata", "labels", "example.com/role"})
	fmt.Println(role, found)
	// Output: primary true
}

func ExampleEqual() {
	fmt.Println(object.Equal(1, 1.0), object.Equal("1", 1))
	fmt.Println(object.Equal(map[string]any{"a": nil}, map[string]any{}))
	// Output:
	// true false
	// true
}

func ExampleNormalize() {
	result, err := object.Normalize(struct {
		Name string `json:"name"`
		Size uint8  `json:"size"`
	}{"db", 3})
	fmt.Println(result, err)
	_, err = object.Normalize(make(chan int))
	fmt.Println(err)
	// Output:
	// map[name:db size:3] <nil>
	// a value of type chan int cannot be expressed as JSON: json: unsupported type: chan int
}

// Each accessor reports whether the value has its type.
func ExampleValue() {
	for _, value := range []any{nil, int64(3), "three"} {
		v := object.NewValue(value)
		number, isNumber := v.Int64()
		text, isText := v.Text()
		fmt.Println(v.Exists(), number, isNumber, text, isText)
	}
	// Output:
	// false 0 false  false
	// true 3 true  false
	// true 0 false three true
}
