package converge

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The API server stores some fields as others, which then have the value, and are what other clients change. So the
// operator could neither see what others change, nor change the value itself. These fields are applied, and compared,
// as they are stored. A test looks for such fields in all built-in kinds.

// podSpecs are where the built-in kinds have the spec of a pod.
var podSpecs = map[schema.GroupKind][]string{
	{Kind: "Pod"}:                        {"spec"},
	{Kind: "PodTemplate"}:                {"template", "spec"},
	{Kind: "ReplicationController"}:      {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template", "spec"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template", "spec"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template", "spec"},
}

// replaceAliases replaces the fields of an object that the API server stores as others. What it would refuse
// stays as it is.
func replaceAliases(content map[string]any) {
	u := &unstructured.Unstructured{Object: content}
	kind := u.GroupVersionKind().GroupKind()
	if kind == (schema.GroupKind{Kind: "Secret"}) {
		encodeText(content)
	}
	if at, has := podSpecs[kind]; has {
		found, _, _ := unstructured.NestedFieldNoCopy(content, at...)
		if spec, ok := found.(map[string]any); ok {
			renameAccount(spec)
		}
	}
}

// encodeText replaces the stringData of a Secret by data. The API server never returns stringData.
func encodeText(secret map[string]any) {
	texts, found, err := unstructured.NestedStringMap(secret, "stringData")
	data, _, dataErr := unstructured.NestedMap(secret, "data")
	if !found || err != nil || dataErr != nil {
		return
	}
	delete(secret, "stringData")
	if len(texts) == 0 {
		return
	}
	if data == nil {
		data = map[string]any{}
	}
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	secret["data"] = data
}

// renameAccount replaces the serviceAccount of the spec of a pod by serviceAccountName, of which the API server
// makes it a copy.
func renameAccount(spec map[string]any) {
	former, found := spec["serviceAccount"].(string)
	if !found {
		return
	}
	delete(spec, "serviceAccount")
	if name, _ := spec["serviceAccountName"].(string); name == "" {
		spec["serviceAccountName"] = former
	}
}
