package settings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

var (
	pods        = selector.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Singular: "pod", ShortNames: []string{"po"}, Preferred: true}
	deployments = selector.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Preferred: true}
	oldKexes    = selector.Resource{Group: "kopf.dev", Version: "v1beta1", Plural: "kopfexamples", Kind: "KopfExample"}
)

func TestSelectorsOfResources(t *testing.T) {
	tests := map[string]struct {
		selectors map[string]string
		of        selector.Resource
		want      string
	}{
		"none":                     {nil, pods, ""},
		"the resource":             {map[string]string{"pods": "app=web"}, pods, "app=web"},
		"another resource":         {map[string]string{"pods": "app=web"}, deployments, ""},
		"a short name":             {map[string]string{"po": "app=web"}, pods, "app=web"},
		"a group":                  {map[string]string{"deployments.apps": "app=web"}, deployments, "app=web"},
		"another group":            {map[string]string{"deployments.extensions": "app=web"}, deployments, ""},
		"parts":                    {map[string]string{"apps/v1/deployments": "app=web"}, deployments, "app=web"},
		"another version":          {map[string]string{"apps/v2/deployments": "app=web"}, deployments, ""},
		"a version of the core":    {map[string]string{"v1/pods": "app=web"}, pods, "app=web"},
		"no preferred version":     {map[string]string{"kopfexamples": "app=web"}, oldKexes, "app=web"},
		"all resources":            {map[string]string{"*": "app=web"}, deployments, "app=web"},
		"all resources of a group": {map[string]string{"apps/*": "app=web"}, pods, ""},
		"several keys":             {map[string]string{"pods": "app=web", "*": "!test", "Pod": "app=web"}, pods, "!test,app=web"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			byLabel, byField := settings.Watching{LabelSelectors: test.selectors, FieldSelectors: map[string]string{"jobs": "a=b"}}.Selectors(test.of)
			if byLabel != test.want || byField != "" {
				t.Errorf("got %q and %q, want %q", byLabel, byField, test.want)
			}
			byLabel, byField = settings.Watching{FieldSelectors: test.selectors}.Selectors(test.of)
			if byField != test.want || byLabel != "" {
				t.Errorf("got %q and %q, want %q for fields", byLabel, byField, test.want)
			}
		})
	}
}

func TestUnusedSelectors(t *testing.T) {
	w := settings.Watching{
		LabelSelectors: map[string]string{"pods": "app=web", "jobs": "app=web"}, FieldSelectors: map[string]string{"*": "metadata.name=a", "jobs": "a=b", "cronjobs": "a=b"},
	}
	if got := w.UnusedSelectors([]selector.Resource{pods, deployments}); !slices.Equal(got, []string{"cronjobs", "jobs"}) {
		t.Errorf("got %q", got)
	}
	if got := w.UnusedSelectors(nil); !slices.Equal(got, []string{"*", "cronjobs", "jobs", "pods"}) {
		t.Errorf("got %q without resources", got)
	}
}

// A setting that the program changes later has no effect.
func TestSelectorsAreCopied(t *testing.T) {
	given := settings.Settings{Watching: settings.Watching{LabelSelectors: map[string]string{"pods": "a"}, FieldSelectors: map[string]string{"pods": "b=c"}}}
	copied := given.WithDefaults()
	given.Watching.LabelSelectors["pods"] = "x"
	given.Watching.FieldSelectors["pods"] = "y=z"
	if byLabel, byField := copied.Watching.Selectors(pods); byLabel != "a" || byField != "b=c" {
		t.Errorf("got %q and %q", byLabel, byField)
	}
}

func TestMistakesInSelectors(t *testing.T) {
	tests := map[string]struct {
		labels, fields map[string]string
		want           string
	}{
		"no resource":          {map[string]string{"": "app=web"}, nil, `settings.Watching.LabelSelectors[""]: the resource selector "": `},
		"a subresource":        {nil, map[string]string{"a/b/c/d": "a=b"}, `settings.Watching.FieldSelectors["a/b/c/d"]: the resource selector "a/b/c/d": `},
		"an empty selector":    {map[string]string{"pods": " "}, nil, `settings.Watching.LabelSelectors["pods"] is empty: remove it to watch all objects`},
		"a bad label selector": {map[string]string{"pods": "app in web"}, nil, `settings.Watching.LabelSelectors["pods"] is "app in web", which cannot be parsed: `},
		"a bad field selector": {nil, map[string]string{"pods": "app"}, `settings.Watching.FieldSelectors["pods"] is "app", which cannot be parsed: `},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := settings.Settings{Watching: settings.Watching{LabelSelectors: test.labels, FieldSelectors: test.fields}}
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
	fine := settings.Settings{Watching: settings.Watching{
		LabelSelectors: map[string]string{"pods": "app in (web, db),!test", "*": "tier!=x"}, FieldSelectors: map[string]string{"v1/pods": "status.phase!=Succeeded,spec.nodeName=a"},
	}}
	if err := fine.Validate(); err != nil {
		t.Error(err)
	}
}
