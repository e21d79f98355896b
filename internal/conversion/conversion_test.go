package conversion

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

var (
	kex      = selector.New("kopf.dev", "kopfexamples")
	resource = selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Preferred: true}
)

// passing appends its versions to the way of the object.
func passing(_ context.Context, c *Call) error {
	way, _, _ := unstructured.NestedString(c.Object.Object, "way")
	c.Object.Object["way"] = way + " " + c.From + ">" + c.To
	return nil
}

// pairs declares conversions: "v1 v2" is from v1 to v2.
func pairs(t *testing.T, texts ...string) Set {
	t.Helper()
	var set Set
	for _, text := range texts {
		from, to, _ := strings.Cut(text, " ")
		d, err := New(kex, from, to, passing)
		if err != nil {
			t.Fatal(err)
		}
		set = append(set, d)
	}
	return set
}

func graphOf(t *testing.T, set Set) *Graph {
	t.Helper()
	graphs, problems := set.Resolve([]selector.Resource{resource})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return graphs["kopfexamples.kopf.dev"]
}

func exampleOf(version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/" + version, "kind": "KopfExample",
		"metadata": map[string]any{"name": "one", "namespace": "ns", "uid": "u", "labels": map[string]any{"a": "b"}, "managedFields": []any{map[string]any{"manager": "m"}}},
	}}
}

func TestObjectsTakeTheShortestWay(t *testing.T) {
	g := graphOf(t, pairs(t, "v1 v2", "v2 v3", "v3 v4", "v1 v3", "v4 v3", "v3 v2", "v2 v1"))
	for want, ask := range map[string][2]string{" v1>v3 v3>v4": {"v1", "v4"}, " v4>v3 v3>v2 v2>v1": {"v4", "v1"}, "": {"v2", "v2"}} {
		given := exampleOf(ask[0])
		got, err := g.Convert(t.Context(), given, ask[1], logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		way, _, _ := unstructured.NestedString(got.Object, "way")
		if way != want || got.GetAPIVersion() != "kopf.dev/"+ask[1] {
			t.Errorf("from %s to %s: got%s as %s", ask[0], ask[1], way, got.GetAPIVersion())
		}
		if given.GetAPIVersion() != "kopf.dev/"+ask[0] || given.Object["way"] != nil {
			t.Error("the given object has changed")
		}
	}
}

func TestMistakesThatAreKnownBeforeTheCluster(t *testing.T) {
	for name, test := range map[string]struct {
		pairs []string
		want  string
	}{
		"hub and spokes":                       {[]string{"v1 v2", "v2 v1", "v3 v2", "v2 v3"}, ""},
		"a chain":                              {[]string{"v1 v2", "v2 v3", "v3 v2", "v2 v1"}, ""},
		"a version that is not served anymore": {[]string{"v1 v2", "v2 v3", "v3 v2"}, ""},
		"two declarations":                     {[]string{"v1 v2", "v2 v1", "v1 v2"}, "from v1 to v2 is already declared at conversion/conversion_test.go:"},
		"no way back":                          {[]string{"v1 v2"}, `declare kopf.OnConvert from "v2" to "v1", too`},
		"two separate sets":                    {[]string{"v1 v2", "v2 v1", "v3 v4", "v4 v3"}, "no conversion between the versions v1 and v3, in either direction"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Bind(pairs(t, test.pairs...), nil)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestMistakesInADeclaration(t *testing.T) {
	for want, declare := range map[string]func() (*Declaration, error){
		"it converts v1 to itself": func() (*Declaration, error) { return New(kex, "v1", "v1", passing) },
		`"kopf.dev/v1" is not the name of a version: name it without its group`: func() (*Declaration, error) { return New(kex, "kopf.dev/v1", "v2", passing) },
		"the function is nil": func() (*Declaration, error) { return New(kex, "v1", "v2", nil) },
		"it has no resource":  func() (*Declaration, error) { return New(selector.Selector{}, "v1", "v2", passing) },
		"it is a single part": func() (*Declaration, error) { return New(selector.New("a/b"), "v1", "v2", passing) },
	} {
		if _, err := declare(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "conversion_test.go:") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestMissingConversionsOfADefinition(t *testing.T) {
	g := graphOf(t, pairs(t, "v1 v2", "v2 v1", "v0 v1"))
	for name, test := range map[string]struct {
		usage Usage
		want  string
	}{
		"all":                          {Usage{Served: []string{"v1", "v2"}, Storage: "v2", Stored: []string{"v1", "v2"}}, ""},
		"an old one that is stored":    {Usage{Served: []string{"v1", "v2"}, Storage: "v2", Stored: []string{"v0", "v2"}}, ""},
		"an old one that is served":    {Usage{Served: []string{"v0", "v1"}, Storage: "v1", Stored: []string{"v1"}}, `declare kopf.OnConvert from "v1" to "v0"`},
		"a new one":                    {Usage{Served: []string{"v1", "v3"}, Storage: "v1", Stored: []string{"v1"}}, `no conversion leads from v3 to v1: declare kopf.OnConvert from "v3" to "v1", or to a version that leads there: v2, v0`},
		"a storage that is not served": {Usage{Served: []string{"v1"}, Storage: "v3", Stored: []string{"v3"}}, "no conversion leads from v1 to v3"},
	} {
		t.Run(name, func(t *testing.T) {
			err := g.Missing(test.usage)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDeclarationsOfOneResourceByOtherNamesConflict(t *testing.T) {
	set := pairs(t, "v1 v2", "v2 v1")
	other, err := New(selector.New("kopfexamples"), "v1", "v2", passing)
	if err != nil {
		t.Fatal(err)
	}
	missing, err := New(selector.New("others"), "v1", "v2", passing)
	if err != nil {
		t.Fatal(err)
	}
	graphs, problems := append(set, other, missing).Resolve([]selector.Resource{resource})
	if len(problems) != 2 || !strings.Contains(problems[0].Error(), "is already declared at") || !strings.Contains(problems[1].Error(), "others") || len(graphs) != 1 {
		t.Errorf("got %v, %v", graphs, problems)
	}
}

func TestWhatAFunctionMayNotDo(t *testing.T) {
	for want, convert := range map[string]Function{
		"": func(_ context.Context, c *Call) error {
			c.Object.SetLabels(nil)
			c.Object.SetAnnotations(map[string]string{"kept": "yes"})
			c.Object.SetManagedFields(nil) // is restored
			return nil
		},
		"changes metadata.name:": func(_ context.Context, c *Call) error { c.Object.SetName("other"); return nil },
		"changes metadata.uid:":  func(_ context.Context, c *Call) error { c.Object.SetUID(""); return nil },
		"changes metadata.finalizers: of the metadata, only labels and annotations can change": func(_ context.Context, c *Call) error { c.Object.SetFinalizers([]string{"a/b"}); return nil },
		"changes metadata.name: ": func(_ context.Context, c *Call) error { delete(c.Object.Object, "metadata"); return nil },
		"metadata that cannot be read": func(_ context.Context, c *Call) error {
			return unstructured.SetNestedField(c.Object.Object, int64(5), "metadata", "labels", "a")
		},
		"changes the kind":               func(_ context.Context, c *Call) error { c.Object.SetKind("Other"); return nil },
		`changes the apiVersion to "v9"`: func(_ context.Context, c *Call) error { c.Object.SetAPIVersion("v9"); return nil },
		"removed the whole object":       func(_ context.Context, c *Call) error { c.Object.Object = nil; return nil },
		"enough":                         func(context.Context, *Call) error { return errors.New("enough") },
		"panic: oh":                      func(context.Context, *Call) error { panic("oh") },
		"runtime.Goexit":                 func(context.Context, *Call) error { runtime.Goexit(); return nil },
		"panic: runtime error":           func(context.Context, *Call) error { var broken *brokenError; return broken },
	} {
		d, err := New(kex, "v1", "v2", convert)
		if err != nil {
			t.Fatal(err)
		}
		got, err := graphOf(t, Set{d}).Convert(t.Context(), exampleOf("v1"), "v2", logr.Discard())
		if want == "" {
			if err != nil || len(got.GetLabels()) > 0 || got.GetAnnotations()["kept"] != "yes" || len(got.GetManagedFields()) != 1 {
				t.Errorf("got %v, %v", got, err)
			}
			continue
		}
		var step *StepError
		if !errors.As(err, &step) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "from v1 to v2: ") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

// The API server does not wait for a function that ignores its context, and the object is not shared with it.
func TestFunctionThatBlocksIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		d, err := New(kex, "v1", "v2", func(context.Context, *Call) error { <-release; return nil })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g := graphOf(t, Set{d})
		for _, want := range []string{"did not return in time", "no time was left"} {
			if _, err := g.Convert(ctx, exampleOf("v1"), "v2", logr.Discard()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		}
		close(release)
	})
}

func TestObjectsOfOtherKindsAreRefused(t *testing.T) {
	other := exampleOf("v1")
	other.SetKind("Other")
	_, err := graphOf(t, pairs(t, "v1 v2")).Convert(t.Context(), other, "v2", logr.Discard())
	if err == nil || !strings.Contains(err.Error(), "it is a Other of kopf.dev/v1, and not a KopfExample of kopf.dev") {
		t.Errorf("got %v", err)
	}
}
