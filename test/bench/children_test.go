package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// The test checks counts only: times depend on the machine.
func TestOperatorsKeepChildrenWithFewRequests(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var log shared
	if err := run(t.Context(), []string{"-children", "-n", "20", "-changes", "40", "-window", "1s", "-json"}, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	var measured report
	if err := json.Unmarshal(out.Bytes(), &measured); err != nil || len(measured.Children) != 2 {
		t.Fatalf("%v\n%s", err, &out)
	}
	ours, theirs := measured.Children[0], measured.Children[1]
	for what, count := range map[string]struct{ got, want float64 }{
		"writes of an object for a creation":        {ours.Create.WritesPerObject, 2},
		"writes of children for a creation":         {ours.Create.ChildrenPerObject, childrenOf},
		"writes of an object for a change":          {ours.Update.WritesPerObject, 1},
		"writes of children for a change":           {ours.Update.ChildrenPerObject, 1},
		"writes of an object for a changed child":   {ours.Drift.WritesPerObject, 0},
		"writes of children for a changed child":    {ours.Drift.ChildrenPerObject, 1},
		"reads, in all phases":                      {ours.Create.ReadsPerObject + ours.Update.ReadsPerObject + ours.Drift.ReadsPerObject, 0},
		"other requests, in all phases":             {ours.Create.OthersPerObject + ours.Update.OthersPerObject + ours.Drift.OthersPerObject, 0},
		"requests at rest":                          {float64(ours.Rest.Requests.all()), 0},
		"writes after a restart":                    {float64(ours.Restart.Requests.Writes + ours.Restart.Requests.Children), 0},
		"reads after a restart":                     {float64(ours.Restart.Requests.Reads), 0},
		"watches after a restart":                   {float64(ours.Restart.Requests.Watches), childrenOf + 2}, // objects, and definitions
		"requests of the hand-written one, at rest": {float64(theirs.Rest.Requests.all()), 0},
	} {
		if count.got != count.want {
			t.Errorf("%v %s, want %v", count.got, what, count.want)
		}
	}
	for _, f := range measured.Children {
		if f.Called.Changes != 40 || f.Called.Median <= 0 || f.Called.Median > f.Repaired.Median || f.BytesPerChild.Heap == 0 {
			t.Errorf("%s: a figure is missing: %+v", f.Subject, f)
		}
	}
	if theirs.Create.WritesPerObject < 1 || theirs.Create.ChildrenPerObject < childrenOf || theirs.Drift.ChildrenPerObject < childrenOf || ours.BytesKept == nil {
		t.Errorf("got %+v", theirs)
	}
	out.Reset()
	if err := measured.print(&out); err != nil || !strings.Contains(out.String(), "goal: 600") || !strings.Contains(out.String(), "goal: 1.2") {
		t.Errorf("%v\n%s", err, &out)
	}
}
