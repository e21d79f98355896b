package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// The test checks counts only, with few objects.
func TestBackgroundHandlersWriteOnlyTheFinalizer(t *testing.T) {
	t.Parallel()
	const objects = 20
	chosen := []string{timers, timersDaemons}
	var out bytes.Buffer
	var log shared
	err := run(t.Context(), []string{"-subjects", strings.Join(chosen, ","), "-n", "20", "-window", "2s", "-interval", "100ms", "-json"}, &out, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	var measured report
	if err := json.Unmarshal(out.Bytes(), &measured); err != nil || len(measured.Background) != len(chosen) {
		t.Fatalf("%v\n%s", err, &out)
	}
	for i, c := range measured.Background {
		has, finalizers := subjects[chosen[i]].background, 0.0
		if has.daemon {
			finalizers = 1
		}
		counts := map[string]struct{ got, want float64 }{
			"writes for a creation": {c.CreateWrites, finalizers},
			"writes for a deletion": {c.DeleteWrites, finalizers},
			"writes at rest":        {float64(c.Rest.Requests.Writes), 0},
			"daemons":               {float64(c.Daemons), finalizers * objects},
		}
		for what, count := range counts {
			if count.got != count.want || c.Subject != chosen[i] {
				t.Errorf("%s: %v %s, want %v", c.Subject, count.got, what, count.want)
			}
		}
		if has.timer != (c.CallsPerSecond > 0) || c.Loaded.Resident <= 0 || c.Left.Resident <= 0 || c.Goroutines <= 0 {
			t.Errorf("%s: a figure is missing: %+v", c.Subject, c)
		}
	}
}

func TestBackgroundFiguresAreComparedWithTheGoals(t *testing.T) {
	measured := report{Objects: 10, Background: []backgroundFigures{
		{Subject: without, BytesPerObject: Memory{3000, 2000}, Load: 0.01},
		{Subject: timers, BytesPerObject: Memory{3700, 2600}, Load: 0.03, CallsPerSecond: 500},
		{Subject: daemons, BytesPerObject: Memory{8000, 4000}, Load: 0.01},
	}}
	var out bytes.Buffer
	if err := measured.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"memory per timer: 700 B (goal: 1024), of which Go heap: 600 B",
		"memory per daemon: 5000 B (goal: 8192), of which Go heap: 2000 B",
		"CPU for 1,000 timer calls per second, timers: 4.00 % of a core (goal: 4)",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing in\n%s", line, &out)
		}
	}
}
