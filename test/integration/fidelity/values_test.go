package fidelity

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// field returns a value in an answer, or nil.
func field(of *object, path ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(of.Object, path...)
	if err != nil {
		return nil
	}
	return value
}

// number64 returns a number in an answer, or -1.
func number64(of *object, path ...string) int {
	if value, ok := field(of, path...).(int64); ok {
		return int(value)
	}
	return -1
}

// text returns an object as JSON.
func text(s *server, of *object) string {
	data, err := json.Marshal(of.Object)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}
