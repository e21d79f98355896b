package cli

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/peering"
)

func TestFreezeSaysWhatItMeansForTheOperators(t *testing.T) {
	tests := map[string]struct {
		frozen peering.Frozen
		want   string
	}{
		"no operators":      {peering.Frozen{}, "No operator has joined the peering yet; those that join pause. A running operator joins a new object at once, or within a minute if the definitions of peering are new, too, and it may not watch definitions."},
		"all operators":     {peering.Frozen{Paused: []string{"a", "b"}}, "The freeze pauses a, b."},
		"some operators":    {peering.Frozen{Paused: []string{"a"}, Active: []string{"b"}}, "The freeze pauses a. The priority 100 is too low for b: set --priority."},
		"no operator of it": {peering.Frozen{Active: []string{"b"}}, "The freeze pauses no operator. The priority 100 is too low for b: set --priority."},
		"an API group is forbidden": {
			peering.Frozen{Paused: []string{"a"}, Forbidden: []string{"zalando.org"}},
			"The freeze pauses a. Operators that meet only in the API group zalando.org do not pause: the peering object there may not be changed (verb patch).",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := describeFrozen(test.frozen, 100); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
