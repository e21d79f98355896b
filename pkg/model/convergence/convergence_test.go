package convergence

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOptionsThatContradictTheProtectionOfData(t *testing.T) {
	claim, job := schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Group: "batch", Kind: "Job"}
	for name, test := range map[string]struct {
		options Options
		want    string // empty if the options are valid
	}{
		"a claim is deleted on request": {Options{Prune: []schema.GroupKind{claim}}, ""},
		"a job is recreated":            {Options{Recreate: []schema.GroupKind{job}}, ""},
		"a claim is recreated":          {Options{Recreate: []schema.GroupKind{claim}}, `kopf.Recreate("PersistentVolumeClaim") would delete data`},
		"a job is deleted on request":   {Options{Prune: []schema.GroupKind{job}}, `kopf.Prune("Job.batch") has no effect`},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.options.Validate()
			if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestKindsOfOptions(t *testing.T) {
	for text, want := range map[string]schema.GroupKind{
		"ConfigMap":       {Kind: "ConfigMap"},
		"Deployment.apps": {Group: "apps", Kind: "Deployment"},
		"deployments":     {},
		"":                {},
	} {
		got, err := ParseKinds([]string{text})
		if want.Empty() != (err != nil) || err == nil && got[0] != want {
			t.Errorf("%q: got %v and %v", text, got, err)
		}
	}
}
