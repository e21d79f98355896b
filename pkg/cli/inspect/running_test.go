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

const (
	idle = "For all objects: 0 handlers are running, 0 wait for a slot, and 0 objects wait for a worker."
	none = "Nothing is due for the object."
)

func TestWhatAnOperatorIsDoing(t *testing.T) {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	background := func(kind, state string) func(*reconcile.Activity) {
		return func(a *reconcile.Activity) {
			a.Background = []reconcile.Background{{Handler: "fn", Kind: kind, State: state}}
		}
	}
	tests := map[string]struct {
		change func(*reconcile.Activity) // of an operator that is idle, and knows the version 7
		want   []string
	}{
		"nothing":            {func(*reconcile.Activity) {}, []string{none, idle}},
		"it is on standby":   {func(a *reconcile.Activity) { a.Leading, a.Paused, a.Version = false, true, "" }, []string{"This replica is on standby: it handles nothing, and does not know what the leader does.", "The operator does not know the object: it does not watch it, or has not seen it yet."}},
		"it is paused":       {func(a *reconcile.Activity) { a.Paused = true }, []string{"The operator is paused by another one.", none, idle}},
		"it is not ready":    {func(a *reconcile.Activity) { a.Ready = false }, []string{"The operator is not ready: it has not seen all objects yet.", none, idle}},
		"it knows no object": {func(a *reconcile.Activity) { a.Version = "" }, []string{"The operator does not know the object: it does not watch it, or has not seen it yet.", idle}},
		"it is behind":       {func(a *reconcile.Activity) { a.Version = "6" }, []string{"The operator has seen the version 6 of the object, and the API server has the version 7.", none, idle}},
		"a handler is running": {func(a *reconcile.Activity) {
			a.Handling, a.Running, a.Calls = true, 1, []reconcile.ActiveCall{{Handler: "fn", Since: noon.Add(-time.Minute)}}
		}, []string{"The handler fn is running since 2026-01-31T11:59:00Z (1m ago).", "For all objects: 1 handler is running, 0 wait for a slot, and 0 objects wait for a worker."}},
		"a handler waits for a slot": {func(a *reconcile.Activity) { a.Handling, a.Running, a.Waiting, a.Limited = true, 2, 1, []string{"fn"} }, []string{
			"The handler fn waits for a slot, because of its kopf.Limit or of Settings.Execution.MaxCalls.", "The operator is looking at the object.", "For all objects: 2 handlers are running, 1 waits for a slot, and 0 objects wait for a worker.",
		}},
		"a daemon is running": {background("daemon", "running"), []string{"The daemon fn is running.", none, idle}},
		"a timer waits":       {background("timer", "waiting"), []string{"The timer fn waits for its next call, or for a change of the object.", none, idle}},
		"a daemon has ended":  {background("daemon", "ended"), []string{"The daemon fn has ended, and is not called again.", none, idle}},
		"a daemon stays":      {background("daemon", "abandoned"), []string{"The daemon fn was stopped and has not returned: it is abandoned.", none, idle}},
		"others undo writes":  {func(a *reconcile.Activity) { a.Contention = metav1.Duration{Duration: 90 * time.Second} }, []string{"Writes to the object wait for another 1m30s, because another client keeps undoing them.", none, idle}},
		"it looks later":      {func(a *reconcile.Activity) { a.From = noon.Add(time.Hour) }, []string{"The operator looks at the object again at 2026-01-31T13:00:00Z (in 1h), if nothing happens before.", idle}},
		"no worker is free": {func(a *reconcile.Activity) {
			a.From, a.Queued, a.QueueAge = noon.Add(-time.Second), 3, metav1.Duration{Duration: 4 * time.Second}
		}, []string{"The object waits for a worker since 2026-01-31T11:59:59Z (1s ago).", "For all objects: 0 handlers are running, 0 wait for a slot, and 3 objects wait for a worker, the first for 4s."}},
		"it looks at it, again": {func(a *reconcile.Activity) { a.Handling, a.From = true, noon.Add(time.Hour) }, []string{"The operator is looking at the object.", idle}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := &reconcile.Activity{At: noon, Ready: true, Leading: true, Version: "7"}
			test.change(a)
			if got := findingsOf(a, "7"); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s", strings.Join(got, "\n"))
			}
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
