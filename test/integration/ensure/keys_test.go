package ensure

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// keyed defines a kind with a list that has keys of a type, and with a set of it.
func (b *bench) keyed(of string) schema.GroupVersionKind {
	b.t.Helper()
	group := strings.ReplaceAll(b.namespace, "-", "") + ".example.com"
	kind := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Keyed"}
	definition := testenv.Definition(group, "keyeds", "Keyed", "v1")
	key := apiextensionsv1.JSONSchemaProps{Type: of}
	if of == "integer" {
		key.Format = "int64"
	}
	associative, set := "map", "set"
	item := apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"key"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"key": key, "value": {Type: "string"},
	}}
	definition.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"list": {Type: "array", XListType: &associative, XListMapKeys: []string{"key"}, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}},
			"set":  {Type: "array", XListType: &set, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &key}},
		}},
	}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	u := object(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "", definition.Name, content)
	u.SetName(definition.Name)
	b.Expect(cluster.Client().Create(b.t.Context(), u)).To(gomega.Succeed())
	b.Eventually(func() error {
		return cluster.Client().Create(b.t.Context(), object(kind, b.namespace, "first", nil))
	}).Should(gomega.Succeed())
	return kind
}

// Items are found by their keys, of whatever type: after a restart there is no false drift, what others
// change is restored or stays accepted, also when the list has another order, and nothing is lost.
func TestItemsAreKnownByTheirKeys(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		of   string
		keys [3]any
	}{
		"small integers":           {"integer", [3]any{int64(1), int64(2), int64(3)}},
		"a million and more":       {"integer", [3]any{int64(1000000), int64(65000000), int64(4200000001)}},
		"integers beyond 2^53":     {"integer", [3]any{int64(9007199254740993), int64(9007199254740992), int64(-9007199254740993)}},
		"booleans":                 {"boolean", [3]any{true, false, nil}},
		"texts":                    {"string", [3]any{"", "ä ]=,[\"", "true"}},
		"texts that look the same": {"string", [3]any{"1", "01", "1.0"}},
		"numbers":                  {"number", [3]any{1.5e-7, 0.1, 1e21}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, notes := newBench(t), &told{}
			kind := b.keyed(test.of)
			family := func(_ context.Context, c *kopf.Change) ([]client.Object, error) { //nolint:unparam // it is a handler
				var list, set []any
				for _, key := range test.keys {
					if key != nil {
						list = append(list, map[string]any{"key": key, "value": "ours"})
						set = append(set, key)
					}
				}
				if turned, _ := c.Spec().Bool("turned"); turned {
					list = append(list[1:], list[0])
				}
				return []client.Object{object(kind, c.Namespace(), c.Name(), map[string]any{"spec": map[string]any{"list": list, "set": set}})}, nil
			}
			decide := restoring
			declare := func(r *kopf.Registry) {
				r.Ensure(shops, family, kopf.ID("children"))
				r.OnDrift(shops, notes.deciding(func(d *kopf.Drift) (kopf.Resolution, error) { return decide(d) }), kopf.ID("drift"))
			}
			declare(b.Registry)
			operator := b.start()
			shop := b.expectHandled(b.shop("one", nil))
			child := b.of(kind, "one")
			spec := b.current(child).Object["spec"]
			restart := func() {
				t.Helper()
				operator = b.restart(operator, declare)
				b.expectRest()
				b.requests.Reset()
				b.expectRest()
				b.Expect(b.requests.Snapshot().Writes("keyeds")).To(gomega.BeZero(), b.story)
			}
			restart()
			b.Expect(notes.take()).To(gomega.BeEmpty())
			if key, _ := test.keys[0].(int64); key > 1<<53 {
				b.patch(shop, `{"spec":{"turned":true}}`)
				b.expectHandled(shop)
				restart()
				b.Expect(b.current(child)).To(testenv.HavePath("spec.list", gomega.HaveLen(3)))
				return // the API server itself takes such a key for its neighbor when others change the item
			}

			// Another manager changes the value of each item.
			edit := func(i int, value string) {
				t.Helper()
				var list []any
				for k, key := range test.keys {
					switch {
					case k == i:
						list = append(list, map[string]any{"key": key, "value": value})
					case key != nil:
						list = append(list, map[string]any{"key": key, "value": "ours"})
					}
				}
				merge, err := json.Marshal(map[string]any{"spec": map[string]any{"list": list}})
				b.Expect(err).NotTo(gomega.HaveOccurred())
				b.as("other", child, string(merge))
			}
			for i, key := range test.keys {
				if key == nil {
					continue
				}
				edit(i, "theirs")
				b.Eventually(notes.take).Should(gomega.HaveLen(1), b.story)
				b.expectChild(child, testenv.HavePath("spec", spec))
				b.expectRest()
			}
			decide = accepting
			edit(0, "accepted")
			b.Eventually(notes.take).Should(gomega.HaveLen(1), b.story)
			b.expectRest()
			restart()
			b.Expect(notes.take()).To(gomega.BeEmpty())
			b.patch(shop, `{"spec":{"turned":true}}`)
			b.expectHandled(shop)
			restart()
			now := b.current(child)
			list, _ := now.Object["spec"].(map[string]any)["list"].([]any)
			values := map[string]any{}
			for _, item := range list {
				item, _ := item.(map[string]any)
				values[fmt.Sprint(item["key"])] = item["value"]
			}
			for i, key := range test.keys {
				want := "ours"
				if i == 0 {
					want = "accepted"
				}
				if key != nil && values[fmt.Sprint(key)] != want {
					t.Errorf("%v has %v, want %s: %v\n%s", key, values[fmt.Sprint(key)], want, list, b.story())
				}
			}
			b.Expect(notes.take()).To(gomega.BeEmpty())
		})
	}
}
