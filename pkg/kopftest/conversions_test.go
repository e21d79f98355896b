package kopftest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

const sitesCRD = "../../examples/crd/sites.yaml"

var sites = kopf.Resource("kopf.dev", "sites")

// renaming returns a conversion that moves a field of the spec. An object with the owner "bad" cannot be converted.
func renaming(from, to string) func(context.Context, *kopf.Conversion) error {
	return func(_ context.Context, c *kopf.Conversion) error {
		spec, _ := c.Object().Object["spec"].(map[string]any)
		if spec["owner"] == "bad" {
			return errors.New("the owner is bad")
		}
		if value, found := spec[from]; found {
			delete(spec, from)
			spec[to] = value
		}
		return nil
	}
}

// wrap and unwrap convert between an endpoint and a list of one.
func wrap(_ context.Context, c *kopf.Conversion) error {
	spec, _ := c.Object().Object["spec"].(map[string]any)
	if endpoint, found := spec["endpoint"]; found {
		spec["endpoints"] = []any{endpoint}
	}
	return nil
}

func unwrap(_ context.Context, c *kopf.Conversion) error {
	spec, _ := c.Object().Object["spec"].(map[string]any)
	if endpoints, _ := spec["endpoints"].([]any); len(endpoints) > 0 {
		spec["endpoint"] = endpoints[0]
	}
	return nil
}

func same(context.Context, *kopf.Conversion) error { return nil }

func newSite(version, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/" + version, "kind": "Site", "metadata": map[string]any{"name": name, "namespace": "default"}, "spec": spec,
	}}
}

// declareSites declares conversions that keep the owner and one endpoint.
func declareSites(r *kopf.Registry) {
	r.OnConvert(sites, "v1beta1", "v1", func(ctx context.Context, c *kopf.Conversion) error {
		return errors.Join(wrap(ctx, c), renaming("", "")(ctx, c))
	})
	r.OnConvert(sites, "v1", "v1beta1", unwrap)
	r.OnConvert(sites, "v1alpha1", "v1beta1", same)
	r.OnConvert(sites, "v1beta1", "v1alpha1", same)
}

// convertingOperator runs an operator that converts sites in virtual time.
func convertingOperator(t *testing.T, test func(t *testing.T, h *kopftest.Harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		registry := func(r *kopf.Registry) {
			declareSites(r)
			r.OnEvent(sites, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("see"))
		}
		test(t, kopftest.New(t, declaring(registry), kopftest.CRDs(sitesCRD)))
	})
}

func definition(h *kopftest.Harness) *unstructured.Unstructured {
	sites := &unstructured.Unstructured{}
	sites.SetAPIVersion("apiextensions.k8s.io/v1")
	sites.SetKind("CustomResourceDefinition")
	sites.SetName("sites.kopf.dev")
	h.Get(sites)
	return sites
}

func strategy(h *kopftest.Harness) string {
	text, _, _ := unstructured.NestedString(definition(h).Object, "spec", "conversion", "strategy")
	return text
}

func TestObjectsAreConvertedInVirtualTime(t *testing.T) {
	convertingOperator(t, func(t *testing.T, h *kopftest.Harness) {
		h.Settle()
		h.Create(newSite("v1", "one", map[string]any{"owner": "web", "endpoints": []any{map[string]any{"host": "a"}}}))
		for version, want := range map[string]string{"v1": "map[endpoints:[map[host:a]] owner:web]", "v1beta1": "map[endpoint:map[host:a] owner:web]", "v1alpha1": "map[owner:web]"} {
			read := newSite(version, "one", nil)
			h.Get(read)
			if got := fmt.Sprint(read.Object["spec"]); got != want || read.GetAPIVersion() != "kopf.dev/"+version {
				t.Errorf("%s: got %s", version, got)
			}
		}
	})
}

// One object that cannot be converted fails the list, and nothing is lost.
func TestAListNamesEachObjectThatCannotBeConverted(t *testing.T) {
	convertingOperator(t, func(t *testing.T, h *kopftest.Harness) {
		h.Settle()
		for _, name := range []string{"one", "two", "three"} {
			owner := "bad"
			if name == "one" {
				owner = "good"
			}
			h.Create(newSite("v1beta1", name, map[string]any{"owner": owner}))
		}
		list := func(version string) (int, error) {
			all := &unstructured.UnstructuredList{}
			all.SetAPIVersion("kopf.dev/" + version)
			all.SetKind("SiteList")
			err := h.Client().List(t.Context(), all)
			return len(all.Items), err
		}
		_, err := list("v1")
		if err == nil || !strings.Contains(err.Error(), "2 of 3 objects of sites.kopf.dev cannot be converted to v1: default/three (uid ") ||
			!strings.Contains(err.Error(), "; default/two (uid ") || !strings.Contains(err.Error(), "from v1beta1 to v1: the owner is bad") {
			t.Errorf("got %v", err)
		}
		if count, err := list("v1beta1"); err != nil || count != 3 {
			t.Errorf("got %d objects, %v", count, err)
		}
	})
}

// What another client changes is written again, and only spec.conversion is written.
func TestConversionOfADefinitionIsRestored(t *testing.T) {
	convertingOperator(t, func(t *testing.T, h *kopftest.Harness) {
		h.Settle()
		if got := strategy(h); got != "Webhook" {
			t.Fatalf("got %s", got)
		}
		h.Patch(definition(h), `{"metadata":{"labels":{"kept":"yes"}},"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
		h.Advance(2 * time.Minute)
		if got := strategy(h); got != "Webhook" || definition(h).GetLabels()["kept"] != "yes" {
			t.Errorf("got %v", definition(h))
		}
		if !said(h, "Another client has changed spec.conversion of a definition.") {
			t.Error("the log does not say it")
		}
		// Again and again: the pauses grow.
		for range 3 {
			h.Patch(definition(h), `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
			h.Advance(15 * time.Minute)
			if got := strategy(h); got != "Webhook" {
				t.Errorf("got %s", got)
			}
		}
		version := definition(h).GetResourceVersion()
		h.Advance(24 * time.Hour)
		if definition(h).GetResourceVersion() != version {
			t.Error("it is written at rest")
		}
	})
}

func said(h *kopftest.Harness, text string) bool {
	for _, line := range h.Logs() {
		if strings.Contains(line.Message, text) {
			return true
		}
	}
	return false
}

// Without the conversion, the API server would cut objects. So it stays as long as there are several versions.
func TestConversionStaysAsLongAsObjectsNeedIt(t *testing.T) {
	convertingOperator(t, func(t *testing.T, h *kopftest.Harness) {
		h.Settle()
		h.Stop()
		if got := strategy(h); got != "Webhook" || !said(h, "The conversion stays in the definition") {
			t.Errorf("got %s", got)
		}
		read := newSite("v1", "one", nil)
		if err := h.Client().Create(t.Context(), read); err == nil || !strings.Contains(err.Error(), "conversion webhook for kopf.dev/v1, Kind=Site failed") {
			t.Errorf("got %v", err)
		}
		h.Start()
		h.Settle()
		for i := range 3 {
			if i != 1 { // only the stored version, v1beta1, is left
				if err := h.Client().Patch(t.Context(), definition(h), client.RawPatch("application/json-patch+json",
					fmt.Appendf(nil, `[{"op":"replace","path":"/spec/versions/%d/served","value":false}]`, i))); err != nil {
					t.Fatal(err)
				}
			}
		}
		h.Advance(time.Minute)
		h.Stop()
		if got := strategy(h); got != "None" {
			t.Errorf("got %s", got)
		}
	})
}

// A definition that is installed later gets its conversion, too, and what is not declared is said with names.
func TestMissingConversionsAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := kopftest.New(t, declaring(func(r *kopf.Registry) {
			r.OnConvert(sites, "v1beta1", "v1", wrap)
			r.OnConvert(sites, "v1", "v1beta1", unwrap)
		}), kopftest.CRDs(sitesCRD))
		h.Settle()
		text := ""
		for _, line := range h.Logs() {
			text += line.Message + " " + fmt.Sprint(line) + "\n"
		}
		for _, want := range []string{"Some objects cannot be converted", `no conversion leads from v1alpha1 to v1: declare kopf.OnConvert from \"v1alpha1\" to \"v1\", or to a version that leads there: v1beta1`} {
			if !strings.Contains(strings.ReplaceAll(text, `"`, `\"`), want) && !strings.Contains(text, want) {
				t.Errorf("the log does not say %s:\n%s", want, text)
			}
		}
	})
}

// Objects that are older than the conversion are listed without it at first, and lack fields. No handler sees that.
func TestNoHandlerSeesObjectsThatAreNotConverted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan string, 10)
		see := func(spec map[string]any) { seen <- fmt.Sprint(spec) }
		h := kopftest.New(t, declaring(func(r *kopf.Registry) {
			declareSites(r)
			r.OnCreate(sites, func(_ context.Context, c *kopf.Change) error { see(c.Spec().Map()); return nil }, kopf.ID("create"))
			r.OnEvent(sites, func(_ context.Context, e *kopf.WatchEvent) error { see(e.Spec().Map()); return nil }, kopf.ID("event"))
			kopf.NewIndex(r, sites, func(_ context.Context, i *kopf.Indexed) (map[string]int, error) {
				if i.Spec().Has("endpoints") {
					see(i.Spec().Map())
				}
				return nil, nil
			}, kopf.ID("index"))
		}), kopftest.CRDs(sitesCRD), kopftest.Objects(newSite("v1beta1", "old", map[string]any{"endpoint": map[string]any{"host": "a"}})))
		h.Settle()
		h.Advance(time.Minute)
		if len(seen) < 3 || !said(h, "They are listed again.") {
			t.Errorf("%d calls", len(seen))
		}
		for len(seen) > 0 {
			if got := <-seen; got != "map[endpoints:[map[host:a]]]" {
				t.Errorf("a handler has seen %s", got)
			}
		}
		h.Restart()
		h.Advance(time.Minute)
		lists := 0
		for _, line := range h.Logs() {
			if strings.Contains(line.Message, "They are listed again.") {
				lists++
			}
		}
		if lists != 1 {
			t.Errorf("they are listed again %d times", lists)
		}
	})
}

// Scenarios need not know that handlers are held up until the objects are converted.
func TestSettleWaitsForConversions(t *testing.T) {
	scenario := func(t *testing.T, with ...kopftest.Option) {
		t.Helper()
		h := kopftest.New(t, declaring(func(r *kopf.Registry) {
			declareSites(r)
			r.OnCreate(sites, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("create"))
		}), append(with, kopftest.CRDs(sitesCRD))...)
		h.Create(newSite("v1", "one", map[string]any{"owner": "web"}))
		h.Settle()
		if calls := h.Calls("create"); len(calls) == 0 {
			t.Error("the handler is not called")
		}
	}
	synctest.Test(t, func(t *testing.T) { scenario(t) })
	kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) { scenario(t, fault) })
}

// recorder is a test that records its errors.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper()                {}
func (r *recorder) Error(arguments ...any) { r.errors = append(r.errors, fmt.Sprint(arguments...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatal(arguments ...any)            { panic(fmt.Sprint(arguments...)) }
func (r *recorder) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func TestWhatCheckConversionsFinds(t *testing.T) {
	for name, test := range map[string]struct {
		declare func(r *kopf.Registry)
		check   kopftest.ConversionCheck
		want    []string
	}{
		"a field that is lost, with its path": {declareSites, kopftest.ConversionCheck{Generated: -1, Samples: []client.Object{
			newSite("v1", "one", map[string]any{"endpoints": []any{map[string]any{"host": "a"}}}), newSite("v1beta1", "one", nil), newSite("v1alpha1", "one", nil),
		}}, []string{"sites.kopf.dev from v1 to v1alpha1 and back: spec was {\"endpoints\":[{\"host\":\"a\"}]}, and is absent\nthe object: {"}},
		"generated objects that lose something": {declareSites, kopftest.ConversionCheck{}, []string{
			"sites.kopf.dev from v1 to v1beta1 and back: ", "sites.kopf.dev from v1 to v1alpha1 and back: ", "sites.kopf.dev from v1beta1 to v1alpha1 and back: ", "sites.kopf.dev from v1alpha1 to v1",
		}},
		"missing declarations": {func(r *kopf.Registry) {
			r.OnConvert(sites, "v1beta1", "v1", wrap)
			r.OnConvert(sites, "v1", "v1beta1", unwrap)
		}, kopftest.ConversionCheck{Generated: -1, Samples: []client.Object{newSite("v1", "one", nil), newSite("v1beta1", "one", nil)}}, []string{
			`no conversion leads from v1alpha1 to v1: declare`, "has no objects to check in the version v1alpha1",
		}},
		"a conversion with another result each time": {func(r *kopf.Registry) {
			calls := 0
			r.OnConvert(sites, "v1beta1", "v1", func(_ context.Context, c *kopf.Conversion) error {
				calls++
				return unstructured.SetNestedField(c.Object().Object, fmt.Sprint(calls), "spec", "owner")
			})
			r.OnConvert(sites, "v1", "v1beta1", same)
			r.OnConvert(sites, "v1alpha1", "v1beta1", same)
			r.OnConvert(sites, "v1beta1", "v1alpha1", same)
		}, kopftest.ConversionCheck{Generated: -1, Samples: []client.Object{newSite("v1", "one", nil), newSite("v1beta1", "one", nil), newSite("v1alpha1", "one", nil)}}, []string{
			"the conversion of the same object to v1 has other results each time: spec.owner is",
		}},
		"an error of a function": {func(r *kopf.Registry) {
			r.OnConvert(sites, "v1beta1", "v1", renaming("endpoint", "endpoint"))
			r.OnConvert(sites, "v1", "v1beta1", same)
			r.OnConvert(sites, "v1alpha1", "v1beta1", same)
			r.OnConvert(sites, "v1beta1", "v1alpha1", same)
		}, kopftest.ConversionCheck{Generated: -1, Samples: []client.Object{
			newSite("v1", "one", nil), newSite("v1beta1", "one", map[string]any{"owner": "bad"}), newSite("v1alpha1", "one", nil),
		}}, []string{"sites.kopf.dev from v1beta1 to v1: from v1beta1 to v1: the owner is bad"}},
	} {
		t.Run(name, func(t *testing.T) {
			registry := kopf.NewRegistry()
			test.declare(registry)
			test.check.CRDs = []string{sitesCRD}
			found := &recorder{TB: t}
			kopftest.CheckConversions(found, registry, test.check)
			all := strings.Join(found.errors, "\n\n")
			for _, want := range test.want {
				if !strings.Contains(all, want) {
					t.Errorf("%q is not in:\n%s", want, all)
				}
			}
		})
	}
}
