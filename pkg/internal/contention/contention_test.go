package contention

import (
	"testing"
	"time"
	"unsafe"
)

const second = time.Second

func rule() Rule {
	return Rule{Patience: 2, Window: 10 * second, Delays: []time.Duration{second, 4 * second}}
}

// change is a change of a rival, some time after the one before.
type change struct {
	after  time.Duration
	begins bool
	delay  time.Duration
}

func TestRivals(t *testing.T) {
	const soon = 10 * second
	calm := rule()
	calm.Calm = time.Minute
	withoutDelays := rule()
	withoutDelays.Delays = nil
	impatient := rule()
	impatient.Patience = 0
	for name, test := range map[string]struct {
		rule    Rule
		changes []change
	}{
		"the first changes are undone at once, and the others later and later": {rule(), []change{
			{0, false, 0}, {soon, false, 0}, {soon, true, second}, {soon, false, 4 * second}, {soon, false, 4 * second},
		}},
		"slow changes are no contention": {rule(), []change{
			{0, false, 0}, {soon + 1, false, 0}, {soon + 1, false, 0}, {soon + 1, false, 0},
		}},
		"a contention is over after the window and twice the last pause": {rule(), []change{
			{0, false, 0},
			{soon, false, 0},
			{soon, true, second},
			{soon + 2*second, false, 4 * second},
			{soon + 8*second + 1, false, 0},
			{soon, false, 0},
			{soon, true, second},
		}},
		"a contention is over after the window and the time of calm": {calm, []change{
			{0, false, 0}, {soon, false, 0}, {soon, true, second}, {soon + time.Minute, false, 4 * second}, {soon + time.Minute + 1, false, 0},
		}},
		"the time of calm is only for contentions": {calm, []change{{0, false, 0}, {soon, false, 0}, {soon + 1, false, 0}}},
		"without delays, there are no pauses":      {withoutDelays, []change{{0, false, 0}, {soon, false, 0}, {soon, true, 0}, {soon, false, 0}}},
		"without patience, the first change is one": {impatient, []change{
			{0, true, second}, {soon, false, 4 * second},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var c Count
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for i, want := range test.changes {
				now = now.Add(want.after)
				c = c.Next(test.rule, now)
				if c.Begins(test.rule) != want.begins || c.Delay(test.rule) != want.delay {
					t.Errorf("change %d: got %v and %v", i+1, c.Begins(test.rule), c.Delay(test.rule))
				}
			}
		})
	}
}

func TestPausesAndContentionsPass(t *testing.T) {
	var none, c Count
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if none.Left(rule(), now) != 0 || none.IsOpen(rule(), now) || !none.IsOver(rule(), now) {
		t.Error("nothing has happened")
	}
	for range 4 {
		c = c.Next(rule(), now)
	}
	for after, want := range map[time.Duration]struct {
		left time.Duration
		open bool
	}{
		0: {4 * second, true}, second: {3 * second, true}, 4 * second: {0, true}, 18 * second: {0, true}, 18*second + 1: {0, false},
	} {
		at := now.Add(after)
		if c.Left(rule(), at) != want.left || c.IsOpen(rule(), at) != want.open || c.IsOver(rule(), at) == want.open {
			t.Errorf("after %v: got %v, %v, and %v", after, c.Left(rule(), at), c.IsOpen(rule(), at), c.IsOver(rule(), at))
		}
	}
	if c := (Count{}).Next(rule(), now); c.IsOpen(rule(), now) || c.IsOver(rule(), now) {
		t.Error("one change is no contention, but the next one counts with it")
	}
}

// Users keep a count for each object or child.
func TestCountsAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(Count{}); size > 32 {
		t.Errorf("a count has %d bytes", size)
	}
}
