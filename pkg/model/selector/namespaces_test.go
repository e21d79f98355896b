package selector_test

import (
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
