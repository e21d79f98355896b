package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

func TestWhatAnOperatorIsDoing(t *testing.T) {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	background := func(kind, state string) func(*reconcile.Activity) {
		return func(a *reconcile.Activity) {
			a.Background = []reconcile.Background{{Handler: "fn", Kind: kind, State: state}}
		}
	}
	tests := map[string]func(*reconcile.Activity){ // they change an operator that is idle, and knows the version 7
		"nothing":            func(*reconcile.Activity) {},
		"it is on standby":   func(a *reconcile.Activity) { a.Leading, a.Paused, a.Version = false, true, "" },
		"it is paused":       func(a *reconcile.Activity) { a.Paused = true },
		"it is not ready":    func(a *reconcile.Activity) { a.Ready = false },
		"it knows no object": func(a *reconcile.Activity) { a.Version = "" },
		"it is behind":       func(a *reconcile.Activity) { a.Version = "6" },
		"a handler is running": func(a *reconcile.Activity) {
			a.Handling, a.Running, a.Calls = true, 1, []reconcile.ActiveCall{{Handler: "fn", Since: noon.Add(-time.Minute)}}
		},
		"a handler waits for a slot": func(a *reconcile.Activity) { a.Handling, a.Running, a.Waiting, a.Limited = true, 2, 1, []string{"fn"} },
		"a daemon is running":        background("daemon", "running"),
		"a timer waits":              background("timer", "waiting"),
		"a daemon has ended":         background("daemon", "ended"),
		"a daemon stays":             background("daemon", "abandoned"),
		"others undo writes":         func(a *reconcile.Activity) { a.Contention = metav1.Duration{Duration: 90 * time.Second} },
		"it looks later":             func(a *reconcile.Activity) { a.From = noon.Add(time.Hour) },
		"no worker is free": func(a *reconcile.Activity) {
			a.From, a.Queued, a.QueueAge = noon.Add(-time.Second), 3, metav1.Duration{Duration: 4 * time.Second}
		},
		"it has the shard": func(a *reconcile.Activity) {
			a.Replica, a.Shard = "web-1_a", &reconcile.ActiveShard{Number: 3, Handling: true}
		},
		"it gives the shard up": func(a *reconcile.Activity) {
			a.Replica, a.Shard = "web-1_a", &reconcile.ActiveShard{Number: 3, Handling: true, Draining: noon.Add(-time.Minute)}
		},
		"it has lost the shard": func(a *reconcile.Activity) {
			a.Replica, a.Shard = "web-1_a", &reconcile.ActiveShard{Number: 3, Handling: true, Lost: true}
		},
		"it has another shard": func(a *reconcile.Activity) {
			a.Replica, a.Shard, a.Version = "web-1_a", &reconcile.ActiveShard{Number: 3}, ""
		},
		"it indexes objects of another shard": func(a *reconcile.Activity) {
			a.Replica, a.Shard, a.Version = "web-1_a", &reconcile.ActiveShard{Number: 3}, "6"
		},
		"it looks at it, again": func(a *reconcile.Activity) { a.Handling, a.From = true, noon.Add(time.Hour) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			a := &reconcile.Activity{At: noon, Ready: true, Leading: true, Version: "7"}
			change(a)
			sentences.Check(t, "", strings.Join(findingsOf(a, "7"), "\n"))
		})
	}
}

// The flags of the operator are unknown without it.
func TestARunningOperatorCorrectsTheAnswer(t *testing.T) {
	const suspended, outside, pauses, perhaps = "It is suspended.", "It is outside.", "Others pause it.", "Others may pause it."
	all := func() *Explanation {
		return &Explanation{suspended: []string{suspended}, outside: []string{outside}, pauses: []string{pauses}, mayPause: []string{perhaps}}
	}
	active := reconcile.Activity{Leading: true, Version: "7"}
	tests := map[string]struct {
		of       *Explanation
		activity reconcile.Activity
		holds    []string
		perhaps  []string
		message  string
	}{
		"an active operator":      {all(), active, []string{suspended}, nil, "would run (attempt 1 of 3), the last error: not yet"},
		"no suspension":           {&Explanation{pauses: []string{pauses}}, active, nil, nil, "will run (attempt 1 of 3), the last error: not yet"},
		"a doubt":                 {&Explanation{mayPause: []string{perhaps}}, active, nil, nil, "will run (attempt 1 of 3), the last error: not yet"},
		"it does not see it":      {all(), reconcile.Activity{Leading: true}, []string{suspended, outside}, nil, "would run (attempt 1 of 3), the last error: not yet"},
		"a paused operator":       {all(), reconcile.Activity{Leading: true, Paused: true, Version: "7"}, []string{suspended, pauses}, []string{perhaps}, "would run (attempt 1 of 3), the last error: not yet"},
		"a doubt that is true":    {&Explanation{mayPause: []string{perhaps}}, reconcile.Activity{Leading: true, Paused: true}, []string{"The running operator is paused by another one.", perhaps}, nil, "would run (attempt 1 of 3), the last error: not yet"},
		"a pause that is unknown": {&Explanation{}, reconcile.Activity{Leading: true, Paused: true}, []string{"The running operator is paused by another one."}, nil, "would run (attempt 1 of 3), the last error: not yet"},
		"the holder of its shard": {all(), reconcile.Activity{Leading: true, Version: "7", Shard: &reconcile.ActiveShard{Handling: true}}, []string{suspended}, nil, "would run (attempt 1 of 3), the last error: not yet"},
		"a standby":               {&Explanation{mayPause: []string{perhaps}}, reconcile.Activity{Paused: true}, nil, []string{perhaps}, "will run (attempt 1 of 3), unless the operator is paused, the last error: not yet"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := test.of
			e.Handlers = []Handler{{State: string(verdict.Due), Message: "will run (attempt 1 of 3), the last error: not yet"}, {State: "done", Message: "has nothing to do"}}
			e.qualify()
			e.correct(&test.activity)
			if !slices.Equal(e.Holds, test.holds) || !slices.Equal(e.PossibleHolds, test.perhaps) {
				t.Errorf("got %q, and perhaps %q", e.Holds, e.PossibleHolds)
			}
			state := string(verdict.Due)
			if len(test.holds) > 0 {
				state = string(verdict.Paused)
			}
			if h := e.Handlers[0]; h.Message != test.message || h.State != state || e.Handlers[1].Message != "has nothing to do" {
				t.Errorf("got %+v", e.Handlers)
			}
		})
	}
}
