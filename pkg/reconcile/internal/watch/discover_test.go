package watch

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
)

func TestResourcesThatCannotBePatchedAreServedOnlyWithoutWritingHandlers(t *testing.T) {
	for name, needsPatch := range map[string]bool{"handlers that write": true, "handlers that only look": false} {
		t.Run(name, func(t *testing.T) {
			present := discovery.Snapshot{Resources: []selector.Resource{
				{Version: "v1", Plural: "componentstatuses", Kind: "ComponentStatus", Preferred: true, Verbs: []string{"get", "list", "watch"}},
				{Version: "v1", Plural: "pods", Kind: "Pod", Preferred: true, Verbs: []string{"get", "list", "watch", "patch"}},
			}}
			w := New(Config{
				Settings: settings.Settings{}.WithDefaults(), Logger: logr.Discard(), Consumer: &recorder{needsPatch: needsPatch},
				Source:    discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) { return present, nil }),
				Selectors: []selector.Selector{selector.New("pods"), selector.New("componentstatuses")},
			})
			if err := w.discover(t.Context()); err != nil {
				t.Fatal(err)
			}
			served := map[string]bool{}
			for _, found := range w.wanted {
				served[found.Plural] = true
			}
			var warnings []string
			for warning := range w.problems.current {
				warnings = append(warnings, warning)
			}
			if !served["pods"] || served["componentstatuses"] == needsPatch || (len(warnings) == 1) != needsPatch {
				t.Errorf("got %v, %q", served, warnings)
			}
			if needsPatch && !strings.Contains(warnings[0], "does not offer to patch them (only get, list, watch)") {
				t.Errorf("got %q", warnings)
			}
		})
	}
}
