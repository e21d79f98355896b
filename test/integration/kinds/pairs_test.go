package kinds

import (
	"flag"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// everywhere also tries the fields of pods in every kind that has the template of one. They are the same
// definitions, and the code of the API server that fills them is that of the definitions.
var everywhere = flag.Bool("everywhere", false, "look for pairs of fields in the pods of all kinds")

// pairs are the fields of the built-in kinds that the API server fills with the value of another field.
var pairs = map[string]string{
	"PodSpec.serviceAccount":                  "serviceAccountName, which alone is applied",
	"PodSpec.serviceAccountName":              "serviceAccount, which is applied as this field",
	"NodeSpec.podCIDR":                        "podCIDRs: neither can be changed",
	"NodeSpec.podCIDRs":                       "podCIDR: neither can be changed",
	"PersistentVolumeClaimSpec.dataSource":    "dataSourceRef: neither can be changed",
	"PersistentVolumeClaimSpec.dataSourceRef": "dataSource: neither can be changed",
	"ServiceSpec.clusterIPs":                  "clusterIP: the API server refuses other values in one of both",
}

// A field that is left out, and has the same value nevertheless, has it from another field. Each of these pairs must
// be known: what other clients change in the other field would not be seen.
func TestPairsOfFields(t *testing.T) {
	s := newSweep(t)
	tries, found := 0, fields{}
	known := map[string]fields{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(4)
	for _, child := range s.children {
		of := child.kind.String()
		if known[of] == nil {
			known[of] = fields{}
		}
		ours, theirs := dryRun(t, child.ours), dryRun(t, child.theirs)
		s.eachField(child, func(name string, way []any) {
			ours, theirs := at(ours.Object, way), at(theirs.Object, way)
			if known[of][name] || reflect.DeepEqual(ours, theirs) {
				return
			}
			known[of][name] = true
			tries++
			group.Go(func() error {
				if isFilled(t, child.ours, way, ours) && isFilled(t, child.theirs, way, theirs) {
					mu.Lock()
					defer mu.Unlock()
					found[name] = true
				}
				return nil
			})
		})
	}
	_ = group.Wait()
	t.Logf("%d fields were left out, and %d have their value nevertheless", tries, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if lookup(pairs, "", name) == "" {
			t.Errorf("the API server fills %s with the value of another field", name)
		}
	}
	for name := range pairs {
		if !found["core.v1."+name] {
			t.Errorf("the API server does not fill %s", name)
		}
	}
}

// dryRun returns what the API server would make of an object.
func dryRun(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	created := u.DeepCopy()
	if err := cluster.Client().Create(t.Context(), created, client.DryRunAll); err != nil {
		t.Fatalf("%s: %v", u.GetName(), err)
	}
	return created
}

// isFilled reports whether the API server sets the field of an object to the value if it is left out.
func isFilled(t *testing.T, u *unstructured.Unstructured, way []any, value any) bool {
	t.Helper()
	part := u.DeepCopy()
	holder, _ := at(part.Object, way[:len(way)-1]).(map[string]any)
	field, _ := way[len(way)-1].(string)
	delete(holder, field)
	if cluster.Client().Create(t.Context(), part, client.DryRunAll) != nil {
		return false // it is required
	}
	return reflect.DeepEqual(at(part.Object, way), value)
}

// at returns what a way of fields and indices leads to.
func at(value any, way []any) any {
	for _, step := range way {
		switch step := step.(type) {
		case string:
			mapping, _ := value.(map[string]any)
			value = mapping[step]
		case int:
			items, _ := value.([]any)
			if step >= len(items) {
				return nil
			}
			value = items[step]
		}
	}
	return value
}

// eachField calls the function for each field of a child, with its definition and the way to it.
func (c *catalog) eachField(child *specimen, do func(name string, way []any)) {
	c.eachFieldIn(child.kind, shortName(child.definition), nil, c.schemas[child.definition], child.ours.Object, do)
}

func (c *catalog) eachFieldIn(k kind, definition string, way []any, s *spec.Schema, value any, do func(name string, way []any)) {
	if name, resolved := c.resolve(s); name != "" {
		definition, s = name, resolved
	}
	isKnown := definition == "core.v1.PodSpec" && k.Kind != "Pod" && k.Kind != "PodTemplate" && !*everywhere
	switch value := value.(type) {
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(value)) {
			of, to := c.field(s, field), append(slices.Clip(way), field)
			if _, isField := s.Properties[field]; isField && (len(way) > 0 || field != "metadata") {
				do(definition+"."+field, to)
			}
			if !isKnown && field != "metadata" {
				c.eachFieldIn(k, definition, to, of, value[field], do)
			}
		}
	case []any:
		for i, item := range value {
			if s.Items != nil {
				c.eachFieldIn(k, definition, append(slices.Clip(way), i), s.Items.Schema, item, do)
			}
		}
	}
}
