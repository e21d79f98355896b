package main

import (
	"cmp"
	"reflect"
	"slices"
	"testing"
)

func TestASeedIsAlwaysTheSameScenario(t *testing.T) {
	if !reflect.DeepEqual(newScenario(7), newScenario(7)) {
		t.Error("the scenarios differ")
	}
	if reflect.DeepEqual(newScenario(7), newScenario(9)) {
		t.Error("two seeds have the same scenario")
	}
}

func TestPartiesTakeTurns(t *testing.T) {
	for seed := range uint64(100) {
		for i, phase := range newScenario(seed).phases {
			if phase.party != int(seed%2+uint64(i))%2 {
				t.Fatalf("seed %d: the phase %d is of party %d", seed, i, phase.party)
			}
		}
	}
}

// TestObjectsLiveInOrder expects that users create each object first and delete it last, and that
// the steps are not the same twice: otherwise, a change could be taken back.
func TestObjectsLiveInOrder(t *testing.T) {
	deleted := 0
	for seed := range uint64(200) {
		lives := map[string][]action{}
		for _, phase := range newScenario(seed).phases {
			live := slices.SortedStableFunc(slices.Values(phase.live), func(a, b action) int { return cmp.Compare(a.after, b.after) })
			for _, a := range append(slices.Clone(phase.away), live...) {
				lives[a.object] = append(lives[a.object], a)
			}
		}
		for name, life := range lives {
			for i, a := range life {
				switch {
				case (i == 0) != (a.verb == create):
					t.Fatalf("seed %d: %s is created by the action %d", seed, name, i)
				case a.verb == remove && i != len(life)-1:
					t.Fatalf("seed %d: %s is changed after its deletion", seed, name)
				case a.verb == remove:
					deleted++
				case a.spec["step"] != i+1:
					t.Fatalf("seed %d: the action %d for %s is the step %v", seed, i, name, a.spec["step"])
				}
			}
		}
	}
	if deleted == 0 {
		t.Error("no object is deleted")
	}
}
