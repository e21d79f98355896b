package discovery_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// pauses are those between looks until there are no more, at most ten.
func pauses(p *discovery.ScanSchedule, settled bool) []time.Duration {
	var all []time.Duration
	for {
		pause, wanted := p.Next()
		if !wanted || len(all) == 10 {
			return all
		}
		all = append(all, pause)
		time.Sleep(pause)
		p.Scanned(settled)
	}
}

func TestPace(t *testing.T) {
	const ms = time.Millisecond
	after := []time.Duration{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms}
	tests := map[string]struct {
		pace    discovery.ScanSchedule
		begin   func(p *discovery.ScanSchedule)
		settled bool
		want    []time.Duration
	}{
		"at first nothing is due":        {begin: func(*discovery.ScanSchedule) {}, want: nil},
		"everything was found":           {begin: func(p *discovery.ScanSchedule) { p.FirstScanned(true) }, settled: true, want: nil},
		"something is missing":           {begin: func(p *discovery.ScanSchedule) { p.FirstScanned(false) }, settled: true, want: after},
		"something has happened":         {begin: (*discovery.ScanSchedule).ScanSoon, settled: true, want: after},
		"something has happened twice":   {begin: func(p *discovery.ScanSchedule) { p.ScanSoon(); p.ScanSoon() }, settled: true, want: after},
		"something goes on to be missed": {begin: (*discovery.ScanSchedule).ScanSoon, want: append(slices.Clone(after), repeat(5*time.Second, 6)...)},
		"nothing tells of changes": {
			pace: discovery.ScanSchedule{Polling: true}, begin: func(p *discovery.ScanSchedule) { p.FirstScanned(true) }, settled: true, want: repeat(5*time.Second, 10),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.pace.MaxInterval = 5 * time.Second
				test.begin(&test.pace)
				if got := pauses(&test.pace, test.settled); !slices.Equal(got, test.want) {
					t.Errorf("got %v, want %v", got, test.want)
				}
			})
		})
	}
}

func TestManyChangesAreOneReasonToLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := discovery.ScanSchedule{MaxInterval: time.Minute}
		looks := 0
		for range 100 { // a second of changes
			pace.ScanSoon()
			time.Sleep(10 * time.Millisecond)
			if pause, wanted := pace.Next(); wanted && pause == 0 {
				pace.Scanned(true)
				looks++
			}
		}
		if looks > 2 {
			t.Errorf("%d looks", looks)
		}
	})
}

func repeat(pause time.Duration, times int) []time.Duration {
	return slices.Repeat([]time.Duration{pause}, times)
}
