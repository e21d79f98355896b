package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/peering"
)

func TestPeering(t *testing.T) {
	type peer struct {
		Priority           int64 `json:"priority"`
		Lifetime           int64 `json:"lifetime"`
		LastSeenSecondsAgo int64 `json:"lastseenSecondsAgo"`
	}
	type input struct {
		Identity string          `json:"identity"`
		Priority int             `json:"priority"`
		Peers    map[string]peer `json:"peers"`
	}
	type expect struct {
		Paused  bool           `json:"paused"`
		Because peering.Reason `json:"because"`
		Dead    []string       `json:"dead"`
	}
	now := time.Now()
	for _, v := range load[input, expect](t, "peering") {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "peering", v.Name) {
				return
			}
			status := map[string]any{}
			for identity, p := range v.Input.Peers {
				lastSeen := now.Add(-time.Duration(p.LastSeenSecondsAgo) * time.Second)
				status[identity] = map[string]any{
					"priority": p.Priority, "lifetime": p.Lifetime, "lastseen": lastSeen.Format(time.RFC3339Nano),
				}
			}
			records, broken := peering.Parse(status)
			if len(broken) > 0 {
				t.Fatal(broken)
			}
			d := peering.Decide(records, v.Input.Identity, v.Input.Priority, now)
			if d.Paused != v.Expect.Paused || d.Reason != v.Expect.Because || !slices.Equal(d.Dead, v.Expect.Dead) {
				t.Errorf("got %+v, want %+v", d, v.Expect)
			}
		})
	}
}
