package discovery_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

var errDown = errors.New("no endpoints")

func resource(group, version, plural string) selector.Resource {
	return selector.Resource{Group: group, Version: version, Plural: plural, Preferred: true, Verbs: []string{"get", "list", "watch"}}
}

func unwatchable(r selector.Resource) selector.Resource {
	r.Verbs = []string{"create"}
	return r
}

func outdated(r selector.Resource) selector.Resource {
	r.Preferred = false
	return r
}

// cluster returns a snapshot in which the group versions are unavailable.
func cluster(down ...string) discovery.Snapshot {
	failed := map[schema.GroupVersion]error{}
	for _, text := range down {
		gv, _ := schema.ParseGroupVersion(text)
		failed[gv] = errDown
	}
	return discovery.Snapshot{Failed: failed, Resources: []selector.Resource{
		unwatchable(resource("", "v1", "bindings")),
		resource("", "v1", "pods"),
		resource("example.com", "v1", "widgets"),
		resource("kopf.dev", "v1", "kopfexamples"),
		outdated(resource("kopf.dev", "v1beta1", "kopfexamples")),
		resource("kopf.dev", "v1", "widgets"),
	}}
}

// served describes each resource with its selectors.
func served(r discovery.Resolution) []string {
	texts := []string{}
	for _, s := range r.Resources {
		texts = append(texts, fmt.Sprintf("%s by %v", s, s.Selectors))
	}
	return texts
}

func TestResolve(t *testing.T) {
	tests := map[string]struct {
		selectors []selector.Selector
		want      []string
	}{
		"a resource selected twice is served once": {
			[]selector.Selector{selector.New("kopfexamples"), selector.New("v1", "pods"), selector.New("kopf.dev", "kopfexamples")},
			[]string{"pods.v1 by [v1/pods]", "kopfexamples.v1.kopf.dev by [kopfexamples kopf.dev/kopfexamples]"},
		},
		"everything excludes what cannot be watched": {
			[]selector.Selector{selector.New("v1", selector.Everything)},
			[]string{"pods.v1 by [v1/*]"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := discovery.Resolve(test.selectors, cluster())
			if !slices.Equal(served(got), test.want) {
				t.Errorf("served are %v, want %v", served(got), test.want)
			}
			if len(got.Warnings) > 0 {
				t.Errorf("warnings: %v", got.Warnings)
			}
		})
	}
}

func TestResolveWarnings(t *testing.T) {
	tests := map[string]struct {
		selector selector.Selector
		target   any
		message  string
	}{
		"missing":           {selector.New("nosuch"), new(*selector.NotFoundError), `"nosuch" selects nothing`},
		"ambiguous":         {selector.New("widgets"), new(*selector.AmbiguousError), "widgets.v1.example.com, widgets.v1.kopf.dev"},
		"not watchable":     {selector.New("bindings"), new(*discovery.UnwatchableError), "bindings.v1 (only create)"},
		"an empty selector": {selector.Selector{}, new(*selector.NotFoundError), "selects nothing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := discovery.Resolve([]selector.Selector{test.selector}, cluster())
			if len(got.Resources) > 0 || len(got.Warnings) != 1 {
				t.Fatalf("got %v, %v", served(got), got.Warnings)
			}
			if err := got.Warnings[0]; !errors.As(err, test.target) || !strings.Contains(err.Error(), test.message) {
				t.Errorf("got the warning %v", err)
			}
		})
	}
}

func TestResolveWhileGroupsAreUnavailable(t *testing.T) {
	tests := map[string]struct {
		selector selector.Selector
		down     string
		want     []string
		complete bool
	}{
		"another group is not needed":                        {selector.New("kopf.dev", "kopfexamples"), "metrics.k8s.io/v1beta1", []string{"kopfexamples.v1.kopf.dev"}, true},
		"a second resource with the name is not expected":    {selector.New("kopfexamples"), "metrics.k8s.io/v1beta1", []string{"kopfexamples.v1.kopf.dev"}, true},
		"nothing can override the core group":                {selector.New("pods"), "metrics.k8s.io/v1beta1", []string{"pods.v1"}, true},
		"the core group can override others":                 {selector.New("kopfexamples"), "v1", []string{}, false},
		"a missing resource may be in the unavailable group": {selector.New("podmetrics"), "metrics.k8s.io/v1beta1", []string{}, false},
		"a missing resource cannot be in another group":      {selector.New("v1", "podmetrics"), "metrics.k8s.io/v1beta1", []string{}, true},
		"the preferred version is unknown":                   {selector.New("kopfexamples"), "kopf.dev/v2", []string{}, false},
		"the named version is available":                     {selector.New("kopf.dev/v1", "kopfexamples"), "kopf.dev/v2", []string{"kopfexamples.v1.kopf.dev"}, true},
		"everything, except for the unavailable":             {selector.New(selector.Everything), "kopf.dev/v2", []string{"pods.v1", "widgets.v1.example.com"}, false},
		"everything in an available group":                   {selector.New("example.com", selector.Everything), "kopf.dev/v2", []string{"widgets.v1.example.com"}, true},
		"ambiguity does not depend on the unavailable":       {selector.New("widgets"), "metrics.k8s.io/v1beta1", []string{}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := discovery.Resolve([]selector.Selector{test.selector}, cluster(test.down))
			var resources []string
			for _, s := range got.Resources {
				resources = append(resources, s.String())
			}
			if !slices.Equal(resources, test.want) {
				t.Errorf("served are %v, want %v", resources, test.want)
			}
			var incomplete *discovery.IncompleteError
			if warning := errors.Join(got.Warnings...); errors.As(warning, &incomplete) == test.complete {
				t.Errorf("got the warnings %v", warning)
			} else if !test.complete && !(errors.Is(warning, errDown) && strings.Contains(warning.Error(), test.down+": no endpoints")) {
				t.Errorf("the reason is missing: %v", warning)
			}
		})
	}
}

func TestResolveSeveralVersions(t *testing.T) {
	selectors := []selector.Selector{selector.New("kopfexamples"), selector.New("kopf.dev/v1beta1", "kopfexamples"), selector.New("pods")}
	all := discovery.Resolve(selectors, cluster())
	if len(all.Resources) != 3 || len(all.Warnings) != 0 {
		t.Fatalf("got %v, %v", served(all), all.Warnings)
	}
	got := all.InOneVersion(func(discovery.SelectedResource) bool { return true })
	if len(got.Resources) != 2 || len(got.Warnings) != 1 {
		t.Fatalf("got %v, %v", served(got), got.Warnings)
	}
	want := "kopfexamples.v1.kopf.dev (by [kopfexamples]) is served, so the handlers of the same objects in other versions are not called: kopfexamples.v1beta1.kopf.dev (by [kopf.dev/v1beta1/kopfexamples])"
	if err := got.Warnings[0]; !strings.Contains(err.Error(), want) {
		t.Errorf("got the warning %v", err)
	}
	observed := all.InOneVersion(func(s discovery.SelectedResource) bool { return s.Version != "v1beta1" })
	if len(observed.Resources) != 3 || len(observed.Warnings) != 0 {
		t.Errorf("got %v, %v", served(observed), observed.Warnings)
	}
}

func ExampleResolve() {
	got := discovery.Resolve([]selector.Selector{selector.New("kopfexamples"), selector.New("widgets")}, cluster())
	for _, s := range got.Resources {
		fmt.Println("serving", s)
	}
	for _, warning := range got.Warnings {
		fmt.Println("warning:", warning)
	}
	// Output:
	// serving kopfexamples.v1.kopf.dev
	// warning: "widgets" is ambiguous, and none of the matching resources is served (widgets.v1.example.com, widgets.v1.kopf.dev): specify one of them with its group
}
