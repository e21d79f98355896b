package discovery_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// intervals returns the times between scans until no more are scheduled, at most ten.
func intervals(s *discovery.ScanSchedule, complete bool) []time.Duration {
	var all []time.Duration
	for {
		delay, scheduled := s.Next()
		if !scheduled || len(all) == 10 {
			return all
		}
		all = append(all, delay)
		time.Sleep(delay)
		s.Scanned(complete)
	}
}

func TestScanSchedule(t *testing.T) {
	const ms = time.Millisecond
	after := []time.Duration{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms}
	tests := map[string]struct {
		schedule discovery.ScanSchedule
		begin    func(s *discovery.ScanSchedule)
		complete bool
		want     []time.Duration
	}{
		"nothing at first":                       {begin: func(*discovery.ScanSchedule) {}, want: nil},
		"everything was found":                   {begin: func(s *discovery.ScanSchedule) { s.FirstScanned(true) }, complete: true, want: nil},
		"something is missing":                   {begin: func(s *discovery.ScanSchedule) { s.FirstScanned(false) }, complete: true, want: after},
		"a change":                               {begin: (*discovery.ScanSchedule).ScanSoon, complete: true, want: after},
		"two changes":                            {begin: func(s *discovery.ScanSchedule) { s.ScanSoon(); s.ScanSoon() }, complete: true, want: after},
		"something stays missing after a change": {begin: (*discovery.ScanSchedule).ScanSoon, want: append(slices.Clone(after), repeat(5*time.Second, 6)...)},
		"changes are not reported": {
			schedule: discovery.ScanSchedule{Polling: true}, begin: func(s *discovery.ScanSchedule) { s.FirstScanned(true) }, complete: true, want: repeat(5*time.Second, 10),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.schedule.MaxInterval = 5 * time.Second
				test.begin(&test.schedule)
				if got := intervals(&test.schedule, test.complete); !slices.Equal(got, test.want) {
					t.Errorf("got %v, want %v", got, test.want)
				}
			})
		})
	}
}

func TestManyChangesCauseFewScans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schedule := discovery.ScanSchedule{MaxInterval: time.Minute}
		scans := 0
		for range 100 { // a second of changes
			schedule.ScanSoon()
			time.Sleep(10 * time.Millisecond)
			if delay, scheduled := schedule.Next(); scheduled && delay == 0 {
				schedule.Scanned(true)
				scans++
			}
		}
		if scans > 2 {
			t.Errorf("%d scans", scans)
		}
	})
}

func repeat(interval time.Duration, times int) []time.Duration {
	return slices.Repeat([]time.Duration{interval}, times)
}
