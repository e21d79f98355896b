package peering

import (
	"reflect"
	"testing"
	"time"
)

// The decisions themselves are measured with Kopf: see test/conformance.
func TestDecideNamesPeersAndDeadline(t *testing.T) {
	now := noon
	seen := func(priority int, ago, lifetime time.Duration) Record {
		return Record{Priority: priority, LastSeen: now.Add(-ago), Lifetime: lifetime}
	}
	tests := map[string]struct {
		records map[string]Record
		want    Decision
	}{
		"no entries": {nil, Decision{}},
		"the first deadline": {
			map[string]Record{"late": seen(2, 10*time.Second, time.Minute), "soon": seen(3, 0, 20*time.Second)},
			Decision{Paused: true, Reason: ReasonHigherPriority, Peers: []string{"late", "soon"}, Until: now.Add(20 * time.Second)},
		},
		"deadlines of other peers do not matter": {
			map[string]Record{"high": seen(2, 0, time.Minute), "same": seen(1, 0, time.Second), "low": seen(0, 0, time.Second)},
			Decision{Paused: true, Reason: ReasonHigherPriority, Peers: []string{"high"}, Until: now.Add(time.Minute)},
		},
		"an entry without a time does not expire": {
			map[string]Record{"manual": {Priority: 2, Lifetime: time.Minute}},
			Decision{Paused: true, Reason: ReasonHigherPriority, Peers: []string{"manual"}, Endless: []string{"manual"}, Until: now.Add(time.Minute)},
		},
		"dead at the deadline": {
			map[string]Record{"b": seen(2, time.Minute, time.Minute), "a": seen(0, time.Hour, time.Minute)},
			Decision{Dead: []string{"a", "b"}},
		},
		"its own entry counts only if it is dead": {
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
