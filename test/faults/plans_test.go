package faults

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// allowance is the number of additional writes that a fault may cost.
const allowance = 6

// TestPlans runs all experiments, each scenario first without a fault.
func TestPlans(t *testing.T) {
	only := chosenPlan(t)
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		if only.scenario != "" && name != only.scenario {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			without := baseline(t, name)
			for _, p := range plans(name, without.requests) {
				if only.fault == "" || p == only {
					try(t, p, without)
				}
			}
		})
	}
}

// chosenPlan returns the plan of the flag, or the zero plan without the flag.
func chosenPlan(t *testing.T) plan {
	if *chosen == "" {
		return plan{}
	}
	p, err := parsePlan(*chosen)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// plans returns all experiments for a scenario with the given number of requests.
func plans(scenario string, requests int) []plan {
	var all []plan
	for k := range requests {
		for _, fault := range slices.Sorted(maps.Keys(faults)) {
			f := faults[fault]
			spared := testing.Short() && !f.short || scenarios[scenario].special && f.general
			if !f.lists && !f.standby && !spared {
				all = append(all, plan{scenario, k + 1, fault})
			}
		}
	}
	return all
}

// baseline runs a scenario without a fault, which must succeed.
func baseline(t *testing.T, scenario string) outcome {
	without := play(t, plan{scenario: scenario})
	if len(without.breaches) > 0 || t.Failed() {
		t.Fatal("the scenario fails even without a fault")
	}
	t.Logf("%d writes without a fault", without.writes)
	return without
}

// try runs an experiment in parallel with others.
func try(t *testing.T, p plan, without outcome) {
	t.Run(fmt.Sprintf("k=%d/%s", p.write, p.fault), func(t *testing.T) {
		t.Parallel()
		compare(t, p, play(t, p), without)
	})
}

// compare compares the outcome of a fault with that of a run without one.
func compare(t *testing.T, p plan, with, without outcome) {
	t.Helper()
	f := faults[p.fault]
	for _, breach := range with.breaches {
		t.Errorf("%s: %s", p, breach)
	}
	for i := range without.stages {
		if f.end != nil {
			break // a different life, which cannot be compared
		}
		if difference := cmp.Diff(without.essential(i, p), with.essential(i, p)); difference != "" {
			t.Errorf("%s: stage %d ends differently (- without, + with the fault):\n%s", p, i+1, difference)
		}
	}
	if limit := without.writes + allowance + f.slack; with.writes > limit {
		t.Errorf("%s: %d writes instead of %d", p, with.writes, without.writes)
	}
	if difference := cmp.Diff(calls(without), calls(with)); f.lives && difference != "" {
		t.Errorf("%s: the handlers were called differently (- without, + with the fault):\n%s", p, difference)
	}
}

// essential returns the state after a stage, without the parts that the fault may change.
func (o outcome) essential(i int, p plan) map[string]any {
	state := o.stages[i]
	if state == nil {
		return nil // the object is gone
	}
	s, f := scenarios[p.scenario], faults[p.fault]
	if f.meddles {
		state = withoutStatus(state, s.added)
	}
	if f.replaces {
		state = withoutItem(withoutStatus(state, s.repeated), "resumed")
	}
	return state
}

// calls returns the starts of handlers in order.
func calls(o outcome) []string {
	var all []string
	for _, s := range o.starts {
		all = append(all, fmt.Sprintf("%s by %s for %s, retry %d", s.id, s.operator, s.reason, s.retry))
	}
	return all
}
