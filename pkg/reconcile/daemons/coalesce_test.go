package daemons

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTimersAreCoalesced(t *testing.T) {
	tests := map[string]struct{ delay, want time.Duration }{
		"a long delay":                      {5*time.Second + 3*time.Millisecond, 5*time.Second + 10*time.Millisecond},
		"a long delay that needs no more":   {5 * time.Second, 5 * time.Second},
		"a long delay just over a multiple": {time.Second + time.Nanosecond, time.Second + 10*time.Millisecond},
		"a short delay":                     {500*time.Millisecond + time.Nanosecond, 501 * time.Millisecond},
		"a delay too short to be postponed": {99*time.Millisecond + 1, 99*time.Millisecond + 1},
		"no delay":                          {0, 0},
		"a time in the past":                {-time.Second, -time.Second},
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
