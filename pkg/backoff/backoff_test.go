package backoff

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// most and least are the ends of what chance can do to a pause.
func most(int64) int64    { return 0 }
func least(n int64) int64 { return n - 1 }

func TestDelay(t *testing.T) {
	forever := time.Duration(math.MaxInt64)
	tests := map[string]struct {
		backoff Backoff
		random  func(int64) int64
		attempt int
		want    time.Duration
	}{
		"a constant pause stays":                   {Constant(time.Minute), least, 7, time.Minute},
		"a constant pause can be none":             {Constant(0), least, 7, 0},
		"the zero value has no pause":              {Backoff{}, least, 7, 0},
		"a negative pause is none":                 {Constant(-time.Second), least, 0, 0},
		"the first pause":                          {Exponential(time.Second, time.Hour), most, 0, time.Second},
		"the second pause is twice as long":        {Exponential(time.Second, time.Hour), most, 1, 2 * time.Second},
		"the fourth pause":                         {Exponential(time.Second, time.Hour), most, 3, 8 * time.Second},
		"chance takes away a fifth at most":        {Exponential(time.Second, time.Hour), least, 3, 6400 * time.Millisecond},
		"the longest pause cuts the last step":     {Exponential(time.Second, 10*time.Second), most, 4, 10 * time.Second},
		"the longest pause stays":                  {Exponential(time.Second, 10*time.Second), most, 5, 10 * time.Second},
		"chance shortens the limit, too":           {Exponential(time.Second, 10*time.Second), least, 5, 8 * time.Second},
		"the longest pause can be the first pause": {Exponential(time.Second, time.Second), most, 5, time.Second},
		"many attempts do not overflow":            {Exponential(time.Second, forever), most, math.MaxInt, forever},
		"an attempt before the first is the first": {Exponential(time.Second, time.Hour), most, -1, time.Second},
		"a pause of one nanosecond has no fifth":   {Exponential(1, 1), least, 0, 1},
		"an invalid first pause is none":           {Exponential(-time.Second, time.Hour), least, 100, 0},
		"an invalid longest pause is none":         {Exponential(time.Second, -1), least, 100, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.backoff.delay(test.attempt, test.random); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestDelayDependsOnChance(t *testing.T) {
	b := Exponential(time.Second, time.Hour)
	seen := map[time.Duration]bool{}
	for range 100 {
		delay := b.Delay(1)
		if delay > 2*time.Second || delay < 1600*time.Millisecond {
			t.Fatalf("the pause %s is not between 1.6s and 2s", delay)
		}
		seen[delay] = true
	}
	if len(seen) < 2 {
		t.Error("a hundred pauses are equal")
	}
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		backoff Backoff
		want    string
	}{
		"the zero value":        {Backoff{}, ""},
		"no pause":              {Constant(0), ""},
		"a pause":               {Constant(time.Second), ""},
		"a negative pause":      {Constant(-time.Second), "the backoff -1s is negative"},
		"a growing pause":       {Exponential(time.Second, time.Second), ""},
		"a first pause of zero": {Exponential(0, time.Second), "must be positive, not 0s"},
		"a negative first one":  {Exponential(-time.Second, time.Second), "must be positive, not -1s"},
		"a longest one below":   {Exponential(time.Minute, time.Second), "1s, is shorter than its first pause, 1m0s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.backoff.Validate()
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestOnlyTheZeroValueStandsForADefault(t *testing.T) {
	standard := Constant(time.Minute)
	if got := (Backoff{}).Or(standard); got != standard {
		t.Errorf("got %s", got)
	}
	if got := Constant(0).Or(standard); got != Constant(0) {
		t.Errorf("got %s", got)
	}
}

func TestString(t *testing.T) {
	got := fmt.Sprint(Backoff{}, Constant(time.Minute), Exponential(time.Second, 10*time.Minute))
	if want := "default 1m0s 1s to 10m0s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
