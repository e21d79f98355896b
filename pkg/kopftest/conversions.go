package kopftest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/sample"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// ConversionCheck says what CheckConversions checks.
type ConversionCheck struct {
	// CRDs are the files and directories with the custom resource definitions, as for CRDs. Those without declared
	// conversions are left out.
	CRDs []string
	// Samples are objects to convert, in any version. Fields with patterns or rules need samples, because objects with
	// them cannot be generated.
	Samples []client.Object
	// Generated is the number of objects that are generated from the schema of each version, apart from the samples.
	// Default: 100. A negative number means none.
	Generated int
	// Seed changes the generated objects.
	Seed uint64
	// Scheme has the Go types of the conversions and of the samples. Default: the built-in types of Kubernetes.
	Scheme *runtime.Scheme
}

// CheckConversions checks the conversions of a registry without a cluster, as an API server uses them. It converts objects
// from every version of the definitions to every version that is served or stored, and back, and drops the fields that
// the schemas do not have each time. The test fails for each pair of versions that no conversion leads to, and for the
// first object that is not the same afterwards, with the path of the first field that differs.
//
//	kopftest.CheckConversions(t, registry, kopftest.ConversionCheck{CRDs: []string{"../config/crd"}})
//
// Conversions may add annotations, to keep what a version cannot express. An absent field and an empty mapping are the
// same. The result of a conversion must always be the same for the same object.
func CheckConversions(t testing.TB, registry *kopf.Registry, check ConversionCheck) {
	t.Helper()
	if check.Scheme == nil {
		check.Scheme = scheme.Scheme
	}
	if check.Generated == 0 {
		check.Generated = 100
	}
	if _, err := registry.Declarations().Handlers(check.Scheme); err != nil {
		t.Fatal(err)
	}
	definitions, err := manifests.Require(check.CRDs...)
	if err != nil {
		t.Fatal(err)
	}
	var all []*versions
	var served []selector.Resource
	for _, read := range definitions {
		one, err := versionsOf(read.Unstructured)
		if err != nil {
			t.Fatalf("%s: %v", read.Path, err)
		}
		all = append(all, one)
		served = append(served, one.resources()...)
	}
	graphs, problems := registry.Declarations().Conversions(check.Scheme).Resolve(served)
	for _, problem := range problems {
		t.Error(problem)
	}
	if len(graphs) == 0 {
		t.Fatal("the registry declares no conversions for these definitions")
	}
	for _, one := range all {
		if graph := graphs[one.definition.Name]; graph != nil {
			(&conversionTrial{t: t, check: check, graph: graph, versions: one}).run()
		}
	}
}

// versions are the versions of a definition, also those that are not served.
type versions struct {
	definition *apiextensionsv1.CustomResourceDefinition
	usage      conversion.Usage
	rules      map[string]*resource.Resource
	schemas    map[string]*apiextensionsv1.JSONSchemaProps
}

func versionsOf(read *unstructured.Unstructured) (*versions, error) {
	definition, err := resource.DefinitionOf(read)
	if err != nil {
		return nil, err
	}
	v := &versions{definition: definition, rules: map[string]*resource.Resource{}, schemas: map[string]*apiextensionsv1.JSONSchemaProps{}}
	all := definition.DeepCopy()
	for i, version := range definition.Spec.Versions {
		if version.Served {
			v.usage.Served = append(v.usage.Served, version.Name)
		}
		if version.Storage {
			v.usage.Storage = version.Name
		}
		v.usage.Stored = append(v.usage.Stored, version.Name) // objects can be stored in it, as long as it is defined
		if version.Schema != nil {
			v.schemas[version.Name] = version.Schema.OpenAPIV3Schema
		}
		all.Spec.Versions[i].Served = true
	}
	made, err := resource.Custom(all)
	if err != nil {
		return nil, err
	}
	for _, one := range made {
		v.rules[one.Version] = one
	}
	return v, nil
}

// resources returns the versions as a cluster discovers them.
func (v *versions) resources() []selector.Resource {
	names := v.definition.Spec.Names
	var all []selector.Resource
	for _, version := range v.usage.Served {
		all = append(all, selector.Resource{
			Group: v.definition.Spec.Group, Version: version, Plural: names.Plural, Singular: names.Singular, Kind: names.Kind,
			ShortNames: names.ShortNames, Categories: names.Categories, Preferred: len(all) == 0,
		})
	}
	return all
}

// conversionTrial checks the conversions of one resource.
type conversionTrial struct {
	t     testing.TB
	check ConversionCheck
	graph *conversion.Graph
	*versions
}

func (c *conversionTrial) run() {
	c.t.Helper()
	if err := c.graph.Missing(c.usage); err != nil {
		c.t.Error(err)
	}
	for _, from := range c.usage.All() {
		objects := c.objects(from)
		for _, to := range c.usage.Targets() {
			if _, err := c.graph.Path(from, to); err != nil || from == to {
				continue // it is reported
			}
			_, err := c.graph.Path(to, from)
			c.pair(from, to, objects, err == nil)
		}
	}
}

// pair converts objects, and back if there is a way back. It reports the first one that is not the same.
func (c *conversionTrial) pair(from, to string, objects []*unstructured.Unstructured, back bool) {
	c.t.Helper()
	for _, one := range objects {
		what := fmt.Sprintf("%s from %s to %s", c.graph.Name, from, to)
		converted, err := c.convert(one, to)
		if err == nil && back {
			what += " and back"
			converted, err = c.convert(converted, from)
		}
		if err == nil && back {
			err = lost(one, converted)
		}
		if err != nil {
			text, _ := json.Marshal(one.Object) // an object can be encoded
			c.t.Errorf("%s: %v\nthe object: %s", what, err, text)
			return
		}
	}
}

// convert converts an object as an API server does, and drops the fields that the schema does not have.
func (c *conversionTrial) convert(from *unstructured.Unstructured, to string) (*unstructured.Unstructured, error) {
	converted, err := c.graph.Convert(c.t.Context(), from, to, logr.Discard())
	if err != nil {
		return nil, err
	}
	again, err := c.graph.Convert(c.t.Context(), from, to, logr.Discard())
	if err != nil {
		return nil, err
	}
	if found := firstDifference(converted.Object, again.Object); found != nil {
		return nil, fmt.Errorf("the conversion of the same object to %s has other results each time: %s is %v, and then %v", to, found.Path, found.Old, found.New)
	}
	if converted == from { // it has the version already
		converted = from.DeepCopy()
	}
	converted = asJSON(converted)
	_, err = c.rules[to].Decode(converted)
	return converted, err
}

// asJSON returns the object as it arrives at an API server.
func asJSON(of *unstructured.Unstructured) *unstructured.Unstructured {
	text, err := json.Marshal(of.Object)
	if err != nil {
		return of
	}
	read := &unstructured.Unstructured{}
	if err := read.UnmarshalJSON(text); err != nil {
		return of
	}
	return read
}

// lost returns an error for the first field that is not the same after the way there and back.
func lost(before, after *unstructured.Unstructured) error {
	given := before.GetAnnotations()
	kept := after.GetAnnotations()
	for key := range kept {
		if _, known := given[key]; !known {
			delete(kept, key)
		}
	}
	after = after.DeepCopy()
	after.SetAnnotations(kept)
	found := firstDifference(before.Object, after.Object)
	if found == nil {
		return nil
	}
	return fmt.Errorf("%s was %s, and is %s", found.Path, inWords(found.Old), inWords(found.New))
}

func inWords(value any) string {
	if value == nil {
		return "absent"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// firstDifference returns the first field that differs, or nil.
func firstDifference(before, after map[string]any) *diff.Item {
	if all := diff.Compute(withoutEmpty(before), withoutEmpty(after), diff.Full); len(all) > 0 {
		return &all[0]
	}
	return nil
}

// withoutEmpty returns a value without nulls and empty mappings in mappings: Go types do not tell them from absent fields.
func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, inner := range value {
			inner = withoutEmpty(inner)
			if mapping, ok := inner.(map[string]any); inner == nil || ok && len(mapping) == 0 {
				continue
			}
			kept[key] = inner
		}
		return kept
	case []any:
		kept := make([]any, 0, len(value))
		for _, inner := range value {
			kept = append(kept, withoutEmpty(inner))
		}
		return kept
	default:
		return object.Copy(value)
	}
}

// objects returns the samples of a version, and generated objects, as an API server stores them.
func (c *conversionTrial) objects(version string) []*unstructured.Unstructured {
	c.t.Helper()
	rules := c.rules[version]
	var all []*unstructured.Unstructured
	for _, given := range c.check.Samples {
		read, err := unstructuredOf(given, c.check.Scheme)
		if err != nil {
			c.t.Fatal(err)
		}
		if read.GroupVersionKind() != rules.GroupVersionKind() {
			continue
		}
		if _, err := rules.Decode(read); err != nil {
			c.t.Fatalf("the sample %s of the version %s: %v", read.GetName(), version, err)
		}
		all = append(all, read)
	}
	random := rand.New(rand.NewPCG(c.check.Seed, 1)) //nolint:gosec // the objects are no secrets
	valid := 0
	for i := range c.check.Generated {
		made := &unstructured.Unstructured{Object: sample.Object(random, c.schemas[version])}
		made.SetGroupVersionKind(rules.GroupVersionKind())
		made.SetName(fmt.Sprintf("generated-%d", i))
		made.SetUID("00000000-0000-4000-8000-000000000001")
		made.SetLabels(map[string]string{"label": "value"})
		made.SetAnnotations(map[string]string{"annotation": "value"})
		if rules.Namespaced {
			made.SetNamespace("default")
		}
		made = asJSON(made)
		if _, err := rules.Decode(made); err != nil || len(rules.Validate(c.t.Context(), made, nil, "")) > 0 {
			continue
		}
		valid++
		all = append(all, made)
	}
	if valid == 0 && len(all) == 0 {
		c.t.Errorf("%s has no objects to check in the version %s: none can be generated from its schema, so add ConversionCheck.Samples", c.graph.Name, version)
	}
	return all
}

// unstructuredOf returns a copy of an object without its Go type.
func unstructuredOf(given client.Object, scheme *runtime.Scheme) (*unstructured.Unstructured, error) {
	made := &unstructured.Unstructured{}
	if err := scheme.Convert(given, made, nil); err == nil && made.GetKind() != "" {
		return made, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(given)
	if err != nil {
		return nil, err
	}
	made.Object = maps.Clone(content)
	return made.DeepCopy(), nil
}
