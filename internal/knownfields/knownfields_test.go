package knownfields

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/pkg/model/object"
)

const definition = `
spec:
  versions:
  - name: v1alpha1
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              replicas: {type: integer}
              template: {type: object, properties: {image: {type: string}, images: {type: object, properties: {default: {type: string}}}}}
              ports: {type: array, items: {type: object, properties: {port: {type: integer}}}}
              labels: {type: object, additionalProperties: {type: string}}
              classes: {type: object, additionalProperties: {type: object, properties: {weight: {type: integer}}}}
              any: {type: object, additionalProperties: true}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: object, properties: {a: {type: string}}}}}
              embedded: {type: object, x-kubernetes-embedded-resource: true}
              target: {x-kubernetes-int-or-string: true}
              nothing: {type: object}
          status: {type: object, properties: {phase: {type: string}}}
`

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// exists stands for a path that exists, or that may exist.
const exists = "exists"

func verify(t *testing.T, of Fields, paths map[string]string) {
	t.Helper()
	for text, want := range paths {
		path, err := object.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		got := exists
		if missing := Check(of, path); missing != nil {
			got = missing.Nearest.String()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestPathsAreCheckedByASchema(t *testing.T) {
	verify(t, OfDefinition(parsed(t, definition), "v1"), map[string]string{
		"spec": exists, "spec.size": exists, "status.phase": exists, "kind": exists, "metadata.labels.any": exists,
		"spec.siez": "spec.size", "spec.Size": "spec.size", "spec.replica": "spec.replicas", "sepc.size": "spec.size", "status.phas": "status.phase",
		"spec.templete.image": "spec.template.image", "spec.templete.other": "spec.template", "spec.template.imag": "spec.template.image",
		"spec.template.image.default": "spec.template.image", "spec.template.imags.default": "spec.template.images.default",
		"size": "spec.size", "phase": "status.phase", "template.image": "spec.template.image", "entirely": "", "spec.entirely": "",
		"spec.size.unit": "spec.size", "spec.ports.port": "spec.ports", "spec.nothing.x": "spec.nothing",
		"spec.labels.any": exists, "spec.labels.any.x": "spec.labels.any", "spec.classes.any.weight": exists, "spec.classes.any.weihgt": "spec.classes.any.weight",
		"spec.any.x": exists, "spec.free.x": exists, "spec.free.known.a": exists, "spec.free.known.b": "spec.free.known.a",
		"spec.embedded.x": exists, "spec.target.x": exists, "metadata.lables": "metadata.labels", "metdata.name": "metadata.name", "kind.x": "kind",
	})
}

func TestASchemaCanSayNothing(t *testing.T) {
	preserving := parsed(t, definition)
	preserving["spec"].(map[string]any)["preserveUnknownFields"] = true
	for name, of := range map[string]Fields{
		"a version that does not exist":      OfDefinition(parsed(t, definition), "v2"),
		"no definition":                      OfDefinition(nil, "v1"),
		"no schema":                          OfDefinition(parsed(t, "spec: {versions: [{name: v1}]}"), "v1"),
		"a definition that keeps all fields": OfDefinition(preserving, "v1"),
	} {
		if of != nil {
			t.Errorf("%s: got %v", name, of)
		}
	}
	verify(t, OfDefinition(parsed(t, definition), "v1alpha1"), map[string]string{"spec.siez": exists, "metadata.lables": "metadata.labels"})
	verify(t, OfDefinition(parsed(t, "spec: {versions: [{name: v1, schema: {openAPIV3Schema: {properties: {spec: {}}}}}]}"), "v1"), map[string]string{"spec.siez": exists, "spce": exists})
}

type site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   siteSpec `json:"spec"`
	Status *struct {
		Phase string `json:"phase,omitempty"`
	} `json:"status,omitempty"`
	hidden int //nolint:unused // it has no JSON
}

type siteSpec struct {
	common `json:",inline"`

	Domain  string                 `json:"domain"`
	Size    resource.Quantity      `json:"size"`
	Labels  map[string]string      `json:"labels"`
	Ports   []struct{}             `json:"ports"`
	Raw     runtime.RawExtension   `json:"raw"`
	Any     any                    `json:"any"`
	Ignored string                 `json:"-"`
	Untold  struct{ Field string } `json:"untold"`
}

type common struct {
	Paused bool   `json:"paused"`
	Domain int    `json:"domain"`
	Coded  *coded `json:"coded"`
}

type nested struct {
	*nested `json:",inline"` //nolint:unused // it is found by reflection
	Depth   int              `json:"depth"`
}

type coded struct{ A string }

func (*coded) UnmarshalJSON([]byte) error { return nil }

var _ json.Unmarshaler = (*coded)(nil)

func TestPathsAreCheckedByAGoType(t *testing.T) {
	verify(t, OfType(&site{}), map[string]string{
		"spec": exists, "spec.domain": exists, "spec.paused": exists, "spec.coded.x": exists, "status.phase": exists, "metadata.annotations.any": exists, "kind": exists,
		"spec.doman": "spec.domain", "spec.Domain": "spec.domain", "spec.domain.x": "spec.domain", "spec.pausd": "spec.paused", "status.phas": "status.phase",
		"spec.size.x": exists, "spec.labels.any": exists, "spec.labels.any.x": "spec.labels.any", "spec.ports.x": "spec.ports", "spec.raw.x": exists, "spec.any.x": exists,
		"spec.untold.fild": exists, "domain": "spec.domain", "metadata.lables": "metadata.labels", "spce.domain": "spec.domain",
	})
	verify(t, OfType(&corev1.Pod{}), map[string]string{
		"spec.nodeNam": "spec.nodeName", "spec.nodeName": exists, "spec.containers.image": "spec.containers", "spec.fromTheFuture": "", "status.phase": exists,
	})
	verify(t, OfType(&unstructured.Unstructured{}), map[string]string{"spce": exists})
	verify(t, OfAnyObject(), map[string]string{"metadata.lables": "metadata.labels", "metadata.labels.x": exists, "metadata.name.x": "metadata.name", "any.x": exists})
}

// An embedded struct of its own type does not make its fields endless, and they are not certain.
func TestAStructCanEmbedItself(t *testing.T) {
	verify(t, OfType(&nested{}), map[string]string{"depth": exists, "depht": exists})
}
