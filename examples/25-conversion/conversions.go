package main

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// declare declares each version's way to the next one and back. Objects go from v1alpha1 to v1 over v1beta1.
func declare(r *kopf.Registry) {
	sites := kopf.Resource("kopf.dev", "sites")
	r.OnConvert(sites, "v1alpha1", "v1beta1", nestEndpoint)
	r.OnConvert(sites, "v1beta1", "v1alpha1", flattenEndpoint)
	r.OnConvert(sites, "v1beta1", "v1", listEndpoints)
	r.OnConvert(sites, "v1", "v1beta1", keepFirstEndpoint)
	r.OnCreate(sites, greet)
}

func greet(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The site is new.", "endpoints", c.Spec().Map()["endpoints"])
	return nil
}

// The version v1alpha1 has the host and the port in the spec. The version v1beta1 has them in an endpoint.
func nestEndpoint(_ context.Context, c *kopf.Conversion) error {
	spec := specOf(c)
	endpoint := map[string]any{}
	for _, key := range []string{"host", "port"} {
		if value, found := spec[key]; found {
			endpoint[key] = value
			delete(spec, key)
		}
	}
	if len(endpoint) > 0 {
		spec["endpoint"] = endpoint
	}
	return nil
}

func flattenEndpoint(_ context.Context, c *kopf.Conversion) error {
	spec := specOf(c)
	endpoint, _ := spec["endpoint"].(map[string]any)
	for _, key := range []string{"host", "port"} {
		if value, found := endpoint[key]; found {
			spec[key] = value
		}
	}
	delete(spec, "endpoint")
	return nil
}

// furtherAnnotation keeps what only v1 can express, while an object has another version.
const furtherAnnotation = "sites.kopf.dev/v1"

// further is what only v1 can express.
type further struct {
	Endpoints []any `json:"endpoints,omitempty"` // after the first one
	Paused    bool  `json:"paused,omitempty"`
}

// The version v1 has a list of endpoints, and can be paused.
func listEndpoints(_ context.Context, c *kopf.Conversion) error {
	spec := specOf(c)
	var kept further
	annotations := c.Object().GetAnnotations()
	if text, found := annotations[furtherAnnotation]; found {
		if err := json.Unmarshal([]byte(text), &kept); err != nil {
			return err
		}
		delete(annotations, furtherAnnotation)
		c.Object().SetAnnotations(annotations)
	}
	endpoints := kept.Endpoints
	if endpoint, found := spec["endpoint"]; found {
		endpoints = append([]any{endpoint}, endpoints...)
	}
	delete(spec, "endpoint")
	if len(endpoints) > 0 {
		spec["endpoints"] = endpoints
	}
	if kept.Paused {
		spec["paused"] = true
	}
	return nil
}

func keepFirstEndpoint(_ context.Context, c *kopf.Conversion) error {
	spec := specOf(c)
	var kept further
	if endpoints, _ := spec["endpoints"].([]any); len(endpoints) > 0 {
		spec["endpoint"] = endpoints[0]
		kept.Endpoints = endpoints[1:]
	}
	kept.Paused, _ = spec["paused"].(bool)
	delete(spec, "endpoints")
	delete(spec, "paused")
	if len(kept.Endpoints) == 0 && !kept.Paused {
		return nil
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(c.Object().Object, string(text), "metadata", "annotations", furtherAnnotation)
}

// specOf returns the spec of the object, which can be changed. An object without one has nothing to convert.
func specOf(c *kopf.Conversion) map[string]any {
	spec, _ := c.Object().Object["spec"].(map[string]any)
	if spec == nil {
		return map[string]any{}
	}
	return spec
}
