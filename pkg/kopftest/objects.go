package kopftest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/garbage"
)

// Object returns an object from YAML or JSON. It panics if the text is not an object, because
// it is written in the test.
func Object(text string) *unstructured.Unstructured {
	objects, err := manifests.Objects([]byte(text))
	if err != nil || len(objects) != 1 {
		//nolint:forbidigo // in a test, and as regexp.MustCompile
		panic(fmt.Sprintf("kopftest.Object: expected one object in YAML (%v):\n%s", err, text))
	}
	return objects[0]
}

// install creates what exists before the operator.
func (h *Harness) install() {
	h.t.Helper()
	definitions, err := manifests.Require(h.runs.options.definitions...)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, one := range definitions {
		if err := h.client.Create(h.t.Context(), one.Unstructured); err != nil {
			h.t.Fatalf("%s: the definition %s cannot be installed: %v", one.Path, one.GetName(), err)
		}
	}
	for _, object := range h.runs.options.objects {
		h.Create(object.DeepCopyObject().(client.Object)) //nolint:errcheck // a copy has the same type
	}
}

// Client returns a client for the test, for everything that has no method here. Handlers
// have a separate client.
func (h *Harness) Client() client.WithWatch { return h.client }

// Create creates an object, and its namespace if that is missing. Afterwards, the object is
// what the server has stored.
func (h *Harness) Create(object client.Object) {
	h.t.Helper()
	if namespace := object.GetNamespace(); namespace != "" {
		missing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}} // of no scheme
		missing.SetName(namespace)
		err := h.client.Create(h.t.Context(), missing)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			h.t.Fatal(err)
		}
	}
	require(h.t, "create", object, h.client.Create(h.t.Context(), object))
}

// Update replaces an object, which must be of the latest version.
func (h *Harness) Update(object client.Object) {
	h.t.Helper()
	require(h.t, "update", object, h.client.Update(h.t.Context(), object))
}

// Patch applies a merge patch in JSON to an object: `{"spec":{"size":2}}`. Afterwards, the
// object is what the server has stored. For other patches, use the Client.
func (h *Harness) Patch(object client.Object, merge string) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(merge), new(any)); err != nil {
		h.t.Fatalf("the merge patch %s is not valid JSON: %v", merge, err)
	}
	require(h.t, "patch", object, h.client.Patch(h.t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(merge))))
}

// Delete deletes an object. It remains as long as it has finalizers.
func (h *Harness) Delete(object client.Object) {
	h.t.Helper()
	require(h.t, "delete", object, h.client.Delete(h.t.Context(), object))
}

// Get reads the latest version of an object, which must exist, and returns it, too.
func (h *Harness) Get(object client.Object) client.Object {
	h.t.Helper()
	require(h.t, "get", object, h.client.Get(h.t.Context(), client.ObjectKeyFromObject(object), object))
	return object
}

// Exists reports whether an object exists.
func (h *Harness) Exists(object client.Object) bool {
	h.t.Helper()
	found := object.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the same type
	err := h.client.Get(h.t.Context(), client.ObjectKeyFromObject(object), found)
	if !apierrors.IsNotFound(err) {
		require(h.t, "get", object, err)
	}
	return err == nil
}

// CollectGarbage deletes the objects whose owners are all gone, as the garbage collector of
// Kubernetes does, with their dependents; and it finishes deletions in the foreground, and those
// that make orphans. Nothing else in a test does that: a real cluster does it all the time. It
// waits as Settle does.
func (h *Harness) CollectGarbage() {
	h.t.Helper()
	for changed := true; changed; {
		var err error
		h.runs.wait(0)
		collector := garbage.Collector{Client: h.client, Objects: h.runs.server.Objects()}
		changed, err = collector.Collect(h.t.Context())
		if err != nil {
			h.t.Fatalf("garbage cannot be collected: %v", err)
		}
	}
	h.Settle()
}

// Events returns the Kubernetes events of all namespaces.
func (h *Harness) Events() []corev1.Event {
	h.t.Helper()
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "EventList"}} // of no scheme
	if err := h.client.List(h.t.Context(), list); err != nil {
		h.t.Fatal(err)
	}
	events := &corev1.EventList{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), events); err != nil {
		h.t.Fatal(err)
	}
	return events.Items
}
