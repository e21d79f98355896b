package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/peering"
)

func TestPlansAreInGoodEnglish(t *testing.T) {
	one := ResourcePlan{
		Resource: "kopfexamples.kopf.dev", Objects: 8, Creations: 1, Updates: 1, Deletions: 1, Continued: 1, Resumed: 1, Daemons: 1, Timers: 1, Outside: 1,
		Suspended: 1, Undecidable: 1, Undeclared: map[string]int{"gone": 1}, ForgottenFailures: map[string]int{"former": 1}, Calls: map[string]int{"fn": 1}, ErrorCount: 1,
		Examples: []string{"a: create", "b: update"},
	}
	two := one
	two.Objects, two.Creations, two.Updates, two.Deletions, two.Continued, two.Resumed, two.Daemons, two.Timers = 14, 0, 2, 2, 2, 2, 2, 0
	two.Outside, two.Suspended, two.Undecidable, two.Undeclared, two.Calls, two.ErrorCount = 2, 2, 2, map[string]int{"gone": 2}, map[string]int{"fn": 2}, 2
	two.ForgottenFailures = map[string]int{"former": 2}
	const forgotten = "stalled by a failure of former, which is not declared: it no longer counts, and without another reason, the condition Ready becomes true. " +
		"If the handler was renamed, declare it with its former id (kopf.ID).\n"
	const undeclared = "the progress of gone, which is not declared: it is neither continued nor removed. If the handler was renamed, declare it with its former id (kopf.ID).\n"
	want := `kopfexamples.kopf.dev: 8 objects
  1 creation, 1 update, and 1 deletion would be handled
  1 object, whose handling has begun, would be continued
  1 object is in a namespace that the operator does not serve
  1 object is suspended, and left alone
  1 object cannot be judged
  1 object would not be handled: nothing that handlers are for has happened to it
  1 of these objects would be resumed when an operator starts
  1 of these objects has handlers that are not decidable here: explain shows which
  1 daemon and 1 timer would run
  - fn would be called for 1 object
  ! 1 object is ` + forgotten + `  ! 1 object has ` + undeclared + `  - a: create
  - b: update
  - and 2 more

kopfexamples.kopf.dev: 14 objects
  0 creations, 2 updates, and 2 deletions would be handled
  2 objects, whose handling has begun, would be continued
  2 objects are in namespaces that the operator does not serve
  2 objects are suspended, and left alone
  2 objects cannot be judged
  2 objects would not be handled: nothing that handlers are for has happened to them
  2 of these objects would be resumed when an operator starts
  2 of these objects have handlers that are not decidable here: explain shows which
  2 daemons and 0 timers would run
  - fn would be called for 2 objects
  ! 2 objects are ` + forgotten + `  ! 2 objects have ` + undeclared + `  - a: create
  - b: update
  - and 4 more
`
	if got := (&Plan{Resources: []ResourcePlan{one, two}}).Text(Style{}); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestPeersSayWhoPausesWhomAndWhy(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	alive := func(priority int) peering.Record {
		return peering.Record{Priority: priority, LastSeen: now.Add(-time.Second), Lifetime: time.Minute}
	}
	freeze := peering.Record{Priority: 100, LastSeen: now, Lifetime: time.Hour, Message: "a migration"}
	tests := map[string]struct {
		records map[string]peering.Record
		want    []string
	}{
		"one operator":               {map[string]peering.Record{"a": alive(1)}, []string{"a (priority 1) was active 1s ago, and pauses no other"}},
		"an operator that has ended": {map[string]peering.Record{"a": {LastSeen: now.Add(-time.Hour), Lifetime: time.Minute}}, []string{"a (priority 0) has expired at 2026-01-31T11:01:00Z, and pauses nothing"}},
		"two of different priorities": {map[string]peering.Record{"a": alive(1), "b": alive(2)}, []string{
			"a (priority 1) is paused by b, because of a higher priority",
			"b (priority 2) pauses a, until 2026-01-31T12:00:59Z unless it is renewed",
		}},
		"two of the same priority": {map[string]peering.Record{"a": alive(1), "b": alive(1)}, []string{
			"a (priority 1) is paused by b, because of the same priority: give them distinct ones by --priority",
			"b (priority 1) is paused by a, because of the same priority: give them distinct ones by --priority",
		}},
		"a freeze": {map[string]peering.Record{"a": alive(1), "b": alive(2), "me": freeze}, []string{
			"a (priority 1) is paused by b, me, because of a higher priority",
			"b (priority 2) is paused by me, because of a higher priority",
			"me (priority 100, a freeze: a migration) pauses a, b until 2026-01-31T13:00:00Z, or until kopf resume ends it",
		}},
		"a freeze without operators": {map[string]peering.Record{"me": freeze, "you": {Priority: 200, LastSeen: now, Lifetime: time.Hour, Frozen: true}}, []string{
			"me (priority 100, a freeze: a migration) pauses no operator that has an entry: those of the priority 100 or a lower one that join are paused until 2026-01-31T13:00:00Z, or until kopf resume ends it",
			"you (priority 200, a freeze) pauses no operator that has an entry: those of the priority 200 or a lower one that join are paused until 2026-01-31T13:00:00Z, or until kopf resume ends it",
		}},
		"two freezes": {map[string]peering.Record{"a": alive(1), "me": freeze, "you": {Priority: 200, LastSeen: now, Lifetime: time.Hour, Frozen: true}}, []string{
			"a (priority 1) is paused by me, you, because of a higher priority",
			"me (priority 100, a freeze: a migration) pauses a until 2026-01-31T13:00:00Z, or until kopf resume ends it",
			"you (priority 200, a freeze) pauses a until 2026-01-31T13:00:00Z, or until kopf resume ends it",
		}},
		"an entry of a person": {map[string]peering.Record{"a": alive(1), "b": {Priority: 7, Lifetime: time.Minute}}, []string{
			"a (priority 1) is paused by b, because of a higher priority",
			"b (priority 7, a freeze) pauses a until it is removed: it does not expire",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			list := PeerList{Peering: "mine", Objects: []PeeringObject{{Object: `ClusterKopfPeering "mine"`, Peers: peersOf("", test.records, now)}}}
			want := "ClusterKopfPeering \"mine\"\n  - " + strings.Join(test.want, "\n  - ") + "\n"
			if got := list.Text(Style{}); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// Handlers with several children fail with several errors.
func TestLinesOfATextAreIndented(t *testing.T) {
	tests := map[int]string{
		0:  "  - fn fails: the child a: it belongs to others\n      the child b: it belongs to others\n",
		40: "  - fn fails: the child a: it belongs\n      to others\n      the child b: it belongs to others\n",
	}
	for width, want := range tests {
		var b strings.Builder
		Style{Width: width}.Paragraph(&b, "  - ", "fn fails: the child a: it belongs to others\nthe child b: it belongs to others")
		if b.String() != want {
			t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
		}
	}
}

// The API server cuts times to seconds.
func TestTimes(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 400_000_000, time.UTC)
	tests := map[time.Duration]string{
		0:                       "2026-01-02T03:04:05Z (0s ago)",
		-400 * time.Millisecond: "2026-01-02T03:04:05Z (0s ago)",
		-time.Hour:              "2026-01-02T02:04:05Z (1h ago)",
		100 * time.Millisecond:  "2026-01-02T03:04:05Z (in 0s)",
		time.Minute:             "2026-01-02T03:05:05Z (in 1m)",
	}
	for distance, want := range tests {
		if got := (&subject{now: now}).at(now.Add(distance)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
