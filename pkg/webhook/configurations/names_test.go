package configurations

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kubernetes must accept the name and the path of every id.
func TestNamesAndPaths(t *testing.T) {
	tests := map[string]struct{ id, name, path, url string }{
		"a plain id":                       {"check", "check.auto.kopf.dev", "check", "check"},
		"the id of a Go function":          {"checkIt", "checkit.auto.kopf.dev", "checkit-40dfe45a", "checkIt"},
		"the id of a Python function":      {"check_it", "check-it.auto.kopf.dev", "check-it-7ff6b305", "check_it"},
		"an id with a field":               {"check/spec.field", "check.spec.field.auto.kopf.dev", "check/spec.field", "check/spec.field"},
		"a field of Kubernetes":            {"check/spec.nodeName", "check.spec.nodename.auto.kopf.dev", "check/spec-nodename-4c692157", "check/spec.nodeName"},
		"spaces":                           {"check it", "check20it.auto.kopf.dev", "check-it-15ea4270", "check%20it"},
		"no ASCII letters":                 {"яя", "d18fd18f.auto.kopf.dev", "", "%D1%8F%D1%8F"},
		"leading and trailing punctuation": {"_check_/-x-", "check.x.auto.kopf.dev", "", "_check_/-x-"},
		"empty segments":                   {"a//b", "a.b.auto.kopf.dev", "", "a//b"},
		"a very long id":                   {strings.Repeat("long", 99), "", "", strings.Repeat("long", 99)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gotName, gotPath := nameOf(test.id), servicePath(test.id)
			if errs := validation.IsDNS1123Subdomain(gotName); len(errs) > 0 || strings.Count(gotName, ".") < 2 {
				t.Errorf("the name %q is invalid: %v", gotName, errs)
			}
			for segment := range strings.SplitSeq(gotPath, "/") {
				if errs := validation.IsDNS1123Subdomain(segment); len(errs) > 0 {
					t.Errorf("the path %q is invalid: %v", gotPath, errs)
				}
			}
			if test.name != "" && gotName != test.name {
				t.Errorf("the name is %q", gotName)
			}
			if test.path != "" && gotPath != test.path {
				t.Errorf("the path is %q", gotPath)
			}
			if got := urlPath(test.id); got != test.url {
				t.Errorf("the URL has %q", got)
			}
		})
	}
}

func nameOf(id string) string { return webhookName(id, nameSuffix("auto.kopf.dev")) }

func TestNameOfTheConfigurationNeedsNoDomain(t *testing.T) {
	got := webhookName("check", nameSuffix("mine"))
	if errs := validation.IsFullyQualifiedName(field.NewPath("name"), got); len(errs) > 0 {
		t.Errorf("%q is invalid: %v", got, errs)
	}
}

func TestUniqueName(t *testing.T) {
	taken := map[string]bool{}
	for _, want := range []string{"a.x.y", "a-2.x.y", "a-3.x.y"} {
		if got := uniqueName("a.x.y", taken); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
