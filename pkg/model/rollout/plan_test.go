package rollout_test

import (
	"fmt"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/rollout"
)

var careful = rollout.Plan{{Objects: 5}, {Percent: 10}}

func TestLimit(t *testing.T) {
	tests := map[string]struct {
		plan                 rollout.Plan
		total, ended, failed int
		want                 string
	}{
		"the first step":                      {careful, 100, 0, 0, "step 1: 5"},
		"within the first step":               {careful, 100, 4, 0, "step 1: 5"},
		"the first step is complete":          {careful, 100, 5, 0, "step 2: 15"},
		"the last step is repeated":           {careful, 100, 15, 0, "step 3: 25"},
		"between two steps":                   {careful, 100, 20, 0, "step 3: 25"},
		"the rest":                            {careful, 100, 95, 0, "step 11: 100"},
		"all are done":                        {careful, 100, 100, 0, "step 11: 100"},
		"a failure stops the rollout":         {careful, 100, 5, 1, "step 2: 5"},
		"a failure stops the step":            {careful, 100, 3, 1, "step 1: 3"},
		"a failure in a later step":           {careful, 100, 15, 2, "step 3: 15"},
		"fewer objects than in the step":      {careful, 3, 0, 0, "step 1: 3"},
		"percent of few objects":              {rollout.Plan{{Percent: 10}}, 3, 0, 0, "step 1: 1"},
		"percent are rounded up":              {rollout.Plan{{Percent: 10}}, 11, 0, 0, "step 1: 2"},
		"no objects":                          {careful, 0, 0, 0, "step 1: 0"},
		"no plan":                             {nil, 100, 3, 3, "step 1: 100"},
		"a failure of the last object":        {careful, 100, 100, 1, "step 11: 100"},
		"objects that have gone meanwhile":    {careful, 10, 7, 0, "step 4: 8"},
		"one number of objects for all steps": {rollout.Plan{{Objects: 3}}, 10, 3, 0, "step 2: 6"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			step, limit := test.plan.Limit(test.total, test.ended, test.failed)
			if got := fmt.Sprintf("step %d: %d", step, limit); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Without failures, every plan ends, and no step is empty.
func TestEveryPlanEnds(t *testing.T) {
	for total := range 40 {
		for _, plan := range []rollout.Plan{careful, {{Objects: 1}}, {{Percent: 1}}, {{Percent: 100}}, {{Objects: 2}, {Percent: 50}, {Objects: 1}}} {
			for ended := 0; ended < total; {
				_, limit := plan.Limit(total, ended, 0)
				if limit <= ended || limit > total {
					t.Fatalf("%v: %d of %d have ended, and the limit is %d", plan, ended, total, limit)
				}
				if _, stopped := plan.Limit(total, limit, 1); stopped != limit {
					t.Fatalf("%v: a failure among %d lets %d begin", plan, limit, stopped)
				}
				ended = limit
			}
		}
	}
}

func TestValidate(t *testing.T) {
	for plan, valid := range map[*rollout.Plan]bool{
		&careful: true, {}: true, {{}}: false, {{Objects: -1}}: false, {{Percent: 101}}: false, {{Objects: 1, Percent: 1}}: false, {{Percent: -1}}: false,
	} {
		if err := plan.Validate(); (err == nil) != valid {
			t.Errorf("%v: got %v", *plan, err)
		}
	}
	if careful.Equal(careful[:1]) || !careful.Equal(rollout.Plan{{Objects: 5}, {Percent: 10}}) {
		t.Error("plans are compared by their steps")
	}
}
