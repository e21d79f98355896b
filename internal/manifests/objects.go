package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Objects returns the objects in the documents of a file. A document that is no object is an error.
func Objects(text []byte) ([]*unstructured.Unstructured, error) {
	all, err := documents(text)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for _, document := range all {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		found = append(found, object)
	}
	return found, nil
}

// Read returns the objects in files, and in folders with all folders below. Kustomizations are none.
func Read(paths ...string) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, path := range paths {
		files, err := filesIn(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file) //nolint:gosec // named by the developer
			if err != nil {
				return nil, err
			}
			objects, err := Objects(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			found = append(found, slices.DeleteFunc(objects, isKustomization)...)
		}
	}
	return found, nil
}

// isKustomization reports whether an object is that of a kustomization.yaml, which needs no kind.
func isKustomization(object *unstructured.Unstructured) bool {
	return object.GetKind() == "" || object.GetKind() == "Kustomization"
}

// documents returns the documents of a file in JSON, without empty ones.
func documents(text []byte) ([][]byte, error) {
	var found [][]byte
	decoder := yaml.NewYAMLToJSONDecoder(bytes.NewReader(text))
	for {
		var document any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		if document == nil {
			continue
		}
		data, err := json.Marshal(document)
		if err != nil {
			return nil, err
		}
		found = append(found, data)
	}
}
