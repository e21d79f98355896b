package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// The test checks only that handlers wait at the same time: the other figures depend on the
// machine.
func TestHandlersWaitAtTheSameTime(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var log shared
	err := run(t.Context(), []string{"-subjects", waitingHandlers, "-n", "20", "-workers", "2", "-wait", "1500ms", "-initial", "50", "-json"}, &out, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	var measured report
	if err := json.Unmarshal(out.Bytes(), &measured); err != nil || len(measured.Waiting) != 1 {
		t.Fatalf("%v\n%s", err, &out)
	}
	f := measured.Waiting[0]
	if f.Handlers != 20 || f.Waiting.Changes < leastChanges || f.Finishing.Changes == 0 || f.Wave.AfterLast > 10*time.Second ||
		f.Initial.Objects != 50 || f.Initial.Live.Changes == 0 || f.Initial.Handled == 0 {
		t.Errorf("got %+v", f)
	}
	measured.printWaiting(&out)
}
