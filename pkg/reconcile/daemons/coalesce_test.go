package daemons

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAlarmsRingTogether(t *testing.T) {
	tests := map[string]struct{ delay, want time.Duration }{
		"a long one":                      {5*time.Second + 3*time.Millisecond, 5*time.Second + 10*time.Millisecond},
		"a long one at the right time":    {5 * time.Second, 5 * time.Second},
		"one that is a bit late for that": {time.Second + time.Nanosecond, time.Second + 10*time.Millisecond},
		"a short one":                     {500*time.Millisecond + time.Nanosecond, 501 * time.Millisecond},
		"one that cannot wait":            {99*time.Millisecond + 1, 99*time.Millisecond + 1},
		"one that is due":                 {0, 0},
		"one that was due":                {-time.Second, -time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{})
				if got := test.delay + s.coalesce(time.Now().Add(test.delay), test.delay); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
			})
		})
	}
}
