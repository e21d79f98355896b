package operator

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/settings"
)

// What outlives the process has the same name in every program. What people read has the name of
// the operator, or of its program.
func TestNames(t *testing.T) {
	posting := func(component string) settings.Posting { return settings.Posting{Component: component} }
	for what, test := range map[string]struct {
		given                       settings.Settings
		manager, operator, eventsOf string
	}{
		"no name":                            {settings.Settings{}, "kopf", "operator.test", "operator.test"},
		"a name":                             {settings.Settings{Name: "web.example.com"}, "web.example.com", "web.example.com", "web.example.com"},
		"a component":                        {settings.Settings{Name: "web.example.com", Posting: posting("kopf")}, "web.example.com", "web.example.com", "kopf"},
		"a name that events cannot have":     {settings.Settings{Name: "my operator"}, "my operator", "my operator", "operator.test"},
		"no name in settings with a default": {settings.Default(), "kopf", "operator.test", "operator.test"},
	} {
		if got := [3]string{fieldManager(test.given), operatorName(test.given), eventComponent(test.given)}; got != [3]string{test.manager, test.operator, test.eventsOf} {
			t.Errorf("with %s: got %q", what, got)
		}
	}
}
