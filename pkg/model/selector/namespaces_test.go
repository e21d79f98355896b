package selector_test

import (
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// These cases are not part of the measured vectors in test/conformance.
func TestClassesInPatternsOfNamespaces(t *testing.T) {
	tests := map[string]struct {
		pattern, name string
		want          bool
	}{
		"one of a class":              {"team-[ab]", "team-a", true},
		"none of a class":             {"team-[ab]", "team-c", false},
		"one that is not excluded":    {"team-[!ab]", "team-c", true},
		"one that is excluded":        {"team-[!ab]", "team-a", false},
		"a caret does not negate":     {"team-[^a]", "team-a", true},
		"a backslash does not escape": {`team-\a`, "team-a", false},
		"a class without an end":      {"team-[a", "team-a", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := selector.MatchNamespace(test.name, test.pattern); got != test.want {
				t.Errorf("%s fits %s: %v", test.name, test.pattern, got)
			}
		})
	}
}

func TestNamespacesByTheirLabels(t *testing.T) {
	scope := selector.Namespaces{"labels:team=web,tier in (a, b)", "other-*", "fixed"}
	for name, test := range map[string]struct {
		name   string
		labels map[string]string
		want   bool
	}{
		"all labels match":  {"one", map[string]string{"team": "web", "tier": "b"}, true},
		"one does not":      {"one", map[string]string{"team": "web", "tier": "c"}, false},
		"it has none":       {"one", nil, false},
		"its name matches":  {"other-one", nil, true},
		"its name is given": {"fixed", nil, true},
	} {
		if got := scope.Match(test.name, test.labels); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	if !scope.NeedsLabels() || len(scope.Names()) != 1 || len(scope.Patterns()) != 2 || (selector.Namespaces{"a"}).NeedsLabels() {
		t.Errorf("got %q, %q", scope.Names(), scope.Patterns())
	}
	for text, want := range map[string]string{
		"labels:":          `the label selector "labels:" of namespaces is empty`,
		"labels:team in":   `the label selector "labels:team in" of namespaces cannot be read`,
		"labels:team==web": "",
		"labels:!team":     "",
	} {
		err := selector.Namespaces{text}.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
