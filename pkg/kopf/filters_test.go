package kopf

import (
	"slices"
	"testing"
)

func TestPredicatesAreCombined(t *testing.T) {
	yes := func(Arguments) bool { return true }
	no := func(Arguments) bool { return false }
	sure, never := yes, no
	tests := map[string]struct {
		predicate func(Arguments) bool
		want      bool
	}{
		"all":       {All(yes, sure), true},
		"not all":   {All(yes, no), false},
		"any":       {Any(yes, no), true},
		"not any":   {Any(no, never), false},
		"none":      {None(no, never), true},
		"not none":  {None(yes, no), false},
		"not":       {Not(no), true},
		"negated":   {Not(yes), false},
		"all mixed": {All(Any(no, yes), None(no)), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.predicate(nil); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// Later conditions may depend on earlier ones.
func TestConditionsAreCheckedUntilTheResultIsCertain(t *testing.T) {
	var asked []int
	say := func(number int, answer bool) func(Arguments) bool {
		return func(Arguments) bool { asked = append(asked, number); return answer }
	}
	tests := map[string]struct {
		predicate func(Arguments) bool
		want      []int
	}{
		"all, until one rejects":    {All(say(1, true), say(2, false), say(3, true)), []int{1, 2}},
		"any, until one accepts":    {Any(say(1, false), say(2, true), say(3, false)), []int{1, 2}},
		"none, until one accepts":   {None(say(1, false), say(2, true), say(3, false)), []int{1, 2}},
		"all, as none is decisive":  {All(say(1, true), say(2, true)), []int{1, 2}},
		"none, as none is decisive": {None(say(1, false), say(2, false)), []int{1, 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			asked = nil
			test.predicate(nil)
			if !slices.Equal(asked, test.want) {
				t.Errorf("got %v, want %v", asked, test.want)
			}
		})
	}
}
