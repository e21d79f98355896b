package peering

import (
	"reflect"
	"testing"
	"time"
)

// The decisions as such are measured on Kopf, and are in test/conformance.
func TestDecideSaysWhoAndUntilWhen(t *testing.T) {
	now := noon
	seen := func(priority int, ago, lifetime time.Duration) Record {
		return Record{Priority: priority, LastSeen: now.Add(-ago), Lifetime: lifetime}
	}
	tests := map[string]struct {
		records map[string]Record
		want    Decision
	}{
		"nobody": {nil, Decision{}},
		"the one that dies first is waited for": {
			map[string]Record{"late": seen(2, 10*time.Second, time.Minute), "soon": seen(3, 0, 20*time.Second)},
			Decision{Paused: true, Reason: ReasonHigherPriority, Peers: []string{"late", "soon"}, Until: now.Add(20 * time.Second)},
		},
		"who does not matter is not waited for": {
			map[string]Record{"high": seen(2, 0, time.Minute), "same": seen(1, 0, time.Second), "low": seen(0, 0, time.Second)},
			Decision{Paused: true, Reason: ReasonHigherPriority, Peers: []string{"high"}, Until: now.Add(time.Minute)},
		},
		"one that does not say when it was seen lives on": {
			map[string]Record{"by hand": {Priority: 2, Lifetime: time.Minute}},
			Decision{Paused: true, Reason: ReasonHigherPriority, Peers: []string{"by hand"}, Until: now.Add(time.Minute)},
		},
		"the end of a life is the death": {
			map[string]Record{"b": seen(2, time.Minute, time.Minute), "a": seen(0, time.Hour, time.Minute)},
			Decision{Dead: []string{"a", "b"}},
		},
		"its own entry counts only when it is dead": {
			map[string]Record{"me": seen(9, time.Hour, time.Minute)}, Decision{Dead: []string{"me"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Decide(test.records, "me", 1, now); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
