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
