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

// APIVersion is that of all resources that tests and examples define.
const APIVersion = "kopf.dev/v1"

// maxPrefix keeps a namespace's name below 63 characters, with room for the
// suffix that makes it unique.
const maxPrefix = 50

// Namespace creates a namespace for one test, named after it. It is left behind,
// to be looked at: namespaces are not finalized here, and the control plane ends
// with the tests.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix(t.Name())}}
	if err := c.client.Create(t.Context(), namespace); err != nil {
		t.Fatal("creating the namespace of the test: ", err)
	}
	return namespace.Name
}

// prefix turns the name of a test into the beginning of a namespace's.
func prefix(test string) string {
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(test), "-")
	name = strings.Trim(name[:min(len(name), maxPrefix)], "-")
	if name == "" {
		name = "test"
	}
	return name + "-"
}

// NewObject makes an object of one of the resources in APIVersion, to be created
// or to be looked up. The namespace of a KopfCluster is empty; a nil spec is
// left out.
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
