package testenv

import (
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// APIVersion is the API version of all resources that tests and examples define.
const APIVersion = "kopf.dev/v1"

// maxPrefix keeps the name of a namespace below 63 characters, including the suffix
// that makes it unique.
const maxPrefix = 50

// Namespace creates a namespace for one test, named after it. It is not deleted:
// namespaces are not finalized here, and the control plane stops after the tests.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	if err := c.noteInputs(); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix(t.Name())}}
	if err := c.client.Create(t.Context(), namespace); err != nil {
		t.Fatal("creating the namespace of the test: ", err)
	}
	return namespace.Name
}

// prefix turns the name of a test into the prefix of the name of a namespace.
func prefix(test string) string {
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(test), "-")
	name = strings.Trim(name[:min(len(name), maxPrefix)], "-")
	if name == "" {
		name = "test"
	}
	return name + "-"
}

// NewObject returns an object of one of the resources in APIVersion, for creation or
// for lookup. The namespace of a KopfCluster is empty; a nil spec is omitted.
func NewObject(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(APIVersion, kind))
	object.SetNamespace(namespace)
	object.SetName(name)
	if spec != nil {
		object.Object["spec"] = spec
	}
	return object
}
