package selector_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestResolve(t *testing.T) {
	tests := map[string]struct {
		selector  selector.Selector
		resources []selector.Resource
		want      []string
	}{
		"one resource of one group":                  {selector.New("kex"), cluster, []string{"kopfexamples.v1.kopf.dev"}},
		"the core group wins":                        {selector.New("pods"), cluster, []string{"pods.v1"}},
		"without the core group, the other one wins": {selector.New("pods"), without(""), []string{"pods.v1beta1.metrics.k8s.io"}},
		"one remaining group is not ambiguous":       {selector.New("kopfexamples"), without("example.com"), []string{"kopfexamples.v1.kopf.dev"}},
		"many resources are valid if requested": {
			selector.New(selector.Everything), cluster,
			[]string{"pods.v1", "pods.v1beta1.metrics.k8s.io", "kopfexamples.v1.kopf.dev", "kopfexamples.v1.example.com"},
		},
		"the core group does not win among many": {
			selector.By(selector.Fields{Category: "all"}), cluster,
			[]string{"pods.v1", "kopfexamples.v1.kopf.dev"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.selector.Resolve(test.resources)
			if err != nil || !slices.Equal(names(got), test.want) {
				t.Errorf("got %v (%v), want %v", names(got), err, test.want)
			}
		})
	}
}

func TestAmbiguity(t *testing.T) {
	got, err := selector.New("KopfExample").Resolve(cluster)
	var ambiguous *selector.AmbiguousError
	if len(got) > 0 || !errors.As(err, &ambiguous) {
		t.Fatalf("got %v, %v", names(got), err)
	}
	if want := []string{"kopfexamples.v1.kopf.dev", "kopfexamples.v1.example.com"}; !slices.Equal(names(ambiguous.Found), want) {
		t.Errorf("found %v, want %v", names(ambiguous.Found), want)
	}
	for _, part := range append(names(ambiguous.Found), `"KopfExample" is ambiguous`, "with its group") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message lacks %q: %v", part, err)
		}
	}
}

func TestNothingFound(t *testing.T) {
	tests := map[string]struct {
		selector selector.Selector
		similar  []string
		message  string
	}{
		"an unknown name":        {selector.New("nosuch"), []string{}, "install its CustomResourceDefinition"},
		"a name in a wrong case": {selector.New("kopf.dev", "kopfExample"), []string{"kopfexamples.v1.kopf.dev", "kopfexamples.v1beta1.kopf.dev", "kopfexamples.v1.example.com"}, "correct the name"},
		"a wrong group":          {selector.New("kopf.zalando.org", "kex"), []string{"kopfexamples.v1.kopf.dev", "kopfexamples.v1beta1.kopf.dev"}, "there is kopfexamples.v1.kopf.dev"},
		"a version that is gone": {selector.New("metrics.k8s.io/v1alpha1", "pods"), []string{"pods.v1", "pods.v1beta1.metrics.k8s.io"}, "pods.v1beta1.metrics.k8s.io"},
		"a plural given as kind": {selector.By(selector.Fields{Kind: "pods"}), []string{"pods.v1", "pods.v1beta1.metrics.k8s.io"}, "there is pods.v1"},
		"an empty category":      {selector.By(selector.Fields{Category: "tools"}), []string{}, `"category=tools" selects nothing in this cluster`},
		"the zero selector":      {selector.Selector{}, []string{}, "selects nothing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.selector.Resolve(cluster)
			var missing *selector.NotFoundError
			if !errors.As(err, &missing) {
				t.Fatalf("got %v", err)
			}
			if got := names(missing.Similar); !slices.Equal(got, test.similar) {
				t.Errorf("similar are %v, want %v", got, test.similar)
			}
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("the message lacks %q: %v", test.message, err)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	metrics := schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"}
	tests := map[string]struct {
		selector selector.Selector
		want     bool
	}{
		"no group covers any":                {selector.New("pods"), true},
		"the group":                          {selector.New("metrics.k8s.io", "nodes"), true},
		"the group and the version":          {selector.New("metrics.k8s.io/v1beta1", "nodes"), true},
		"another version of the group":       {selector.New("metrics.k8s.io/v1", "nodes"), false},
		"another group":                      {selector.New("v1", "pods"), false},
		"a callback may accept anything":     {selector.Func(isNamespaced), true},
		"a selector with a mistake: nothing": {selector.New(""), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.selector.Covers(metrics); got != test.want {
				t.Errorf("%q covers %v: %v", test.selector, metrics, got)
			}
		})
	}
}

func TestResource(t *testing.T) {
	if got := oldKex.String(); got != "kopfexamples.v1beta1.kopf.dev" {
		t.Errorf("String() is %q", got)
	}
	for _, r := range cluster {
		if got := names(selector.New(r.String()).Select(cluster)); !slices.Equal(got, []string{r.String()}) {
			t.Errorf("the name of %s selects %v", r, got)
		}
	}
	if got := oldKex.GVR().String(); got != "kopf.dev/v1beta1, Resource=kopfexamples" {
		t.Errorf("GVR() is %q", got)
	}
	r := selector.Resource{Verbs: []string{"get", "list"}}
	if !r.Can("list") || r.Can("list", "watch") {
		t.Errorf("%v: Can is wrong", r.Verbs)
	}
}
