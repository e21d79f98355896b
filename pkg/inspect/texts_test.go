package inspect

import (
	"slices"
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
	sentences.Check(t, "", (&Plan{Resources: []ResourcePlan{one, two}}).Text(Style{}))
}

func TestPeersSayWhoPausesWhomAndWhy(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	alive := func(priority int) peering.Record {
		return peering.Record{Priority: priority, LastSeen: now.Add(-time.Second), Lifetime: time.Minute}
	}
	freeze := peering.Record{Priority: 100, LastSeen: now, Lifetime: time.Hour, Message: "a migration"}
	tests := map[string]struct {
		records map[string]peering.Record
		paused  map[string][]string // by whom
	}{
		"one operator":                {map[string]peering.Record{"a": alive(1)}, nil},
		"an operator that has ended":  {map[string]peering.Record{"a": {LastSeen: now.Add(-time.Hour), Lifetime: time.Minute}}, nil},
		"two of different priorities": {map[string]peering.Record{"a": alive(1), "b": alive(2)}, map[string][]string{"a": {"b"}}},
		"two of the same priority":    {map[string]peering.Record{"a": alive(1), "b": alive(1)}, map[string][]string{"a": {"b"}, "b": {"a"}}},
		"a freeze":                    {map[string]peering.Record{"a": alive(1), "b": alive(2), "me": freeze}, map[string][]string{"a": {"b", "me"}, "b": {"me"}}},
		"a freeze without operators":  {map[string]peering.Record{"me": freeze, "you": {Priority: 200, LastSeen: now, Lifetime: time.Hour, Frozen: true}}, nil},
		"two freezes":                 {map[string]peering.Record{"a": alive(1), "me": freeze, "you": {Priority: 200, LastSeen: now, Lifetime: time.Hour, Frozen: true}}, map[string][]string{"a": {"me", "you"}}},
		"an entry of a person":        {map[string]peering.Record{"a": alive(1), "b": {Priority: 7, Lifetime: time.Minute}}, map[string][]string{"a": {"b"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			list := PeerList{Peering: "mine", Objects: []PeeringObject{{Object: `ClusterKopfPeering "mine"`, Peers: peersOf("", test.records, now)}}}
			for _, peer := range list.Objects[0].Peers {
				if !slices.Equal(peer.PausedBy, test.paused[peer.Identity]) {
					t.Errorf("%s is paused by %q", peer.Identity, peer.PausedBy)
				}
			}
			sentences.Check(t, "", list.Text(Style{}))
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
