package selector_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestNotations(t *testing.T) {
	tests := map[string]struct {
		parts []string
		text  string
		want  []string
	}{
		"a group with slash-separated version":    {[]string{"kopf.dev/v1beta1", "kex"}, "kopf.dev/v1beta1/kex", []string{"kopfexamples.v1beta1.kopf.dev"}},
		"three parts":                             {[]string{"kopf.dev", "v1", "KopfExample"}, "kopf.dev/v1/KopfExample", []string{"kopfexamples.v1.kopf.dev"}},
		"a group means its preferred version":     {[]string{"kopf.dev", "kopfexample"}, "kopf.dev/kopfexample", []string{"kopfexamples.v1.kopf.dev"}},
		"kubectl's form":                          {[]string{"kopfexamples.v1.kopf.dev"}, "kopfexamples.v1.kopf.dev", []string{"kopfexamples.v1.kopf.dev"}},
		"kubectl's form with a kind":              {[]string{"KopfExample.v1beta1.kopf.dev"}, "KopfExample.v1beta1.kopf.dev", []string{"kopfexamples.v1beta1.kopf.dev"}},
		"kubectl's form of the core group":        {[]string{"events.v1."}, "events.v1.", []string{"events.v1"}},
		"v1 alone is the core group":              {[]string{"v1", "events"}, "v1/events", []string{"events.v1"}},
		"the core group by its real name":         {[]string{"", "v1", "events"}, "/v1/events", []string{"events.v1"}},
		"the core group by its real name, in one": {[]string{"/v1", "events"}, "/v1/events", []string{"events.v1"}},
		"the core group in words":                 {[]string{selector.Core, "ev"}, "core/ev", []string{"events.v1"}},
		"the core group in words and its version": {[]string{"core/v1", "ev"}, "core/v1/ev", []string{"events.v1"}},
		"everything in the core group":            {[]string{selector.Core, selector.Everything}, "core/*", []string{"pods.v1"}},
		"a version that does not exist":           {[]string{"kopf.dev/v9", "kex"}, "kopf.dev/v9/kex", []string{}},
		"names are case-sensitive":                {[]string{"kopf.dev", "Kopfexample"}, "kopf.dev/Kopfexample", []string{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := selector.New(test.parts...)
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
			if got := names(s.Select(cluster)); !slices.Equal(got, test.want) {
				t.Errorf("selected %v, want %v", got, test.want)
			}
			if s.String() != test.text {
				t.Errorf("String() is %q, want %q", s, test.text)
			}
		})
	}
}

func TestMistakesAreReported(t *testing.T) {
	tests := map[string]struct {
		selector selector.Selector
		want     string // a part of the message
	}{
		"nothing at all":             {selector.New(), "specify the name"},
		"too many parts":             {selector.New("a", "b", "c", "d"), "it has 4 parts"},
		"an empty name":              {selector.New(""), "the name is empty"},
		"an empty name in a group":   {selector.New("kopf.dev", ""), "the name is empty"},
		"an empty version":           {selector.New("kopf.dev", "", "kex"), "the version is empty"},
		"an empty version, slashed":  {selector.New("kopf.dev/", "kex"), "the version is empty"},
		"a version without a group":  {selector.New("v1beta1", "kex"), "is a version without a group"},
		"slashes in one part":        {selector.New("kopf.dev/v1/kex"), "single part with slashes"},
		"a subresource":              {selector.New("kopf.dev", "kex/status"), "subresources have no handlers"},
		"a group twice":              {selector.New("kopf.dev", "kex.kopf.dev"), "has a dot"},
		"a pattern":                  {selector.New("kopf*"), "is a pattern or a list"},
		"a list":                     {selector.New("pods,services"), "is a pattern or a list"},
		"a strange name":             {selector.New("käse"), "cannot be a name"},
		"a strange group":            {selector.New("Kopf.dev", "kex"), "cannot be a group"},
		"a group with two slashes":   {selector.New("kopf.dev/v1/beta", "kex"), "cannot be a group"},
		"a strange version":          {selector.New("kopf.dev", "V1", "kex"), "cannot be a version"},
		"no fields":                  {selector.By(selector.Fields{}), "it has no name"},
		"a group and no name":        {selector.By(selector.Fields{Group: "kopf.dev"}), "it has no name"},
		"two names":                  {selector.By(selector.Fields{Kind: "Pod", Plural: "pods"}), "several names"},
		"a name and a category":      {selector.By(selector.Fields{Kind: "Pod", Category: "all"}), "several names"},
		"everything as a name":       {selector.By(selector.Fields{Plural: selector.Everything}), "is not allowed here"},
		"a field of the wrong form":  {selector.By(selector.Fields{Kind: "Pod", Version: "v 1"}), "cannot be a version"},
		"a callback that is missing": {selector.Func(nil), "the function is nil"},
		"a type that is unknown":     {selector.Exact(schema.GroupVersionKind{}), "register the type"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.selector.Err()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a message with %q", err, test.want)
			}
			if selected := test.selector.Select(cluster); len(selected) > 0 {
				t.Errorf("a selector with a mistake has selected %v", names(selected))
			}
		})
	}
}

func TestBy(t *testing.T) {
	tests := map[string]struct {
		fields selector.Fields
		text   string
		want   []string
	}{
		"a kind":                       {selector.Fields{Kind: "PodMetrics"}, "kind=PodMetrics", []string{"pods.v1beta1.metrics.k8s.io"}},
		"a kind is not a plural":       {selector.Fields{Kind: "pods"}, "kind=pods", []string{}},
		"a plural in a group":          {selector.Fields{Plural: "kopfexamples", Group: "kopf.dev"}, "plural=kopfexamples,group=kopf.dev", []string{"kopfexamples.v1.kopf.dev"}},
		"a singular":                   {selector.Fields{Singular: "pod"}, "singular=pod", []string{"pods.v1"}},
		"a short name in a version":    {selector.Fields{ShortName: "kex", Version: "v1beta1"}, "shortName=kex,version=v1beta1", []string{"kopfexamples.v1beta1.kopf.dev"}},
		"the core group":               {selector.Fields{Kind: "Event", Group: selector.Core}, "kind=Event,group=core", []string{"events.v1"}},
		"a category leaves out events": {selector.Fields{Category: "all"}, "category=all", []string{"pods.v1", "kopfexamples.v1.kopf.dev"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := selector.By(test.fields)
			if got := names(s.Select(cluster)); s.Err() != nil || !slices.Equal(got, test.want) {
				t.Errorf("selected %v (%v), want %v", got, s.Err(), test.want)
			}
			if s.String() != test.text {
				t.Errorf("String() is %q, want %q", s, test.text)
			}
		})
	}
}

func TestExact(t *testing.T) {
	s := selector.Exact(oldKex.GVK())
	if got := names(s.Select(cluster)); !slices.Equal(got, []string{"kopfexamples.v1beta1.kopf.dev"}) {
		t.Errorf("selected %v", got)
	}
	if got := names(selector.Exact(pods.GVK()).Select(cluster)); !slices.Equal(got, []string{"pods.v1"}) {
		t.Errorf("the core group: selected %v", got)
	}
	if s.String() != "KopfExample.v1beta1.kopf.dev" || !s.Specific() {
		t.Errorf("%q is specific: %v", s, s.Specific())
	}
}

func isNamespaced(r selector.Resource) bool { return r.Namespaced && r.Group != "example.com" }

func TestFunc(t *testing.T) {
	s := selector.Func(isNamespaced)
	want := []string{"pods.v1", "pods.v1beta1.metrics.k8s.io", "kopfexamples.v1.kopf.dev", "kopfexamples.v1beta1.kopf.dev"}
	if got := names(s.Select(cluster)); !slices.Equal(got, want) {
		t.Errorf("callbacks see all versions and no events: got %v, want %v", got, want)
	}
	if s.Specific() || !strings.HasSuffix(s.String(), "isNamespaced") {
		t.Errorf("%q is specific: %v", s, s.Specific())
	}
}

func TestEquality(t *testing.T) {
	factory := func(group string) selector.Selector {
		return selector.Func(func(r selector.Resource) bool { return r.Group == group })
	}
	same := selector.New("kopf.dev", "v1", "kex")
	tests := map[string]struct {
		a, b selector.Selector
		want bool
	}{
		"the same parts are equal":                        {same, selector.New("kopf.dev", "v1", "kex"), true},
		"a version next to the group is the same":         {same, selector.New("kopf.dev/v1", "kex"), true},
		"the same fields are equal":                       {selector.By(selector.Fields{Kind: "Pod"}), selector.By(selector.Fields{Kind: "Pod"}), true},
		"another name is another selector":                {same, selector.New("kopf.dev", "v1", "pods"), false},
		"two closures of one function are not the same":   {factory("a"), factory("b"), false},
		"mistakes are comparable too":                     {selector.New(), selector.New(), true},
		"a kind by name is not the same as any such name": {selector.New("Pod"), selector.By(selector.Fields{Kind: "Pod"}), false},
		"the zero selector is not one without a name":     {selector.Selector{}, selector.New(""), false},
		"the zero selector has no mistake":                {selector.Selector{}, selector.Selector{}, selector.Selector{}.Err() == nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.a == test.b; got != test.want {
				t.Errorf("%q == %q is %v", test.a, test.b, got)
			}
		})
	}
}
