package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestRunMeasuresAdmission(t *testing.T) {
	t.Parallel()
	var out, log bytes.Buffer
	if err := run(t.Context(), []string{"-admission", "-calls", "40", "-clients", "4", "-json"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	var measured report
	if err := json.Unmarshal(out.Bytes(), &measured); err != nil || measured.Admission == nil || len(measured.Subjects) > 0 {
		t.Fatalf("%v\n%s", err, &out)
	}
	a := measured.Admission
	for name, figures := range map[string]Latencies{"ours": a.Ours, "theirs": a.Theirs} {
		if figures.Median <= 0 || figures.P99 < figures.Median || figures.CallsPerSecond <= 0 {
			t.Errorf("%s: %+v", name, figures)
		}
	}
	if err := measured.print(&out); err != nil || a.Calls != 40 || a.Time <= 0 || !strings.Contains(out.String(), "goal: 1.15") {
		t.Errorf("%v %+v\n%s", err, a, &out)
	}
}
