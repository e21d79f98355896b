package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

// The test checks counts only: how long the answers take, and whether the API server has a seat for
// each request of the neighbor, depends on the machine.
func TestNeighborsAreMeasured(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var log shared
	arguments := []string{"-neighbors", "-n", "100", "-window", "1s", "-rate", "20", "-seats", "20", "-reject", "-subjects", neighborOurs + "," + neighborHandwritten, "-json"}
	if err := run(t.Context(), arguments, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	var measured report
	if err := json.Unmarshal(out.Bytes(), &measured); err != nil || len(measured.Neighbors) != 2 {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, f := range measured.Neighbors {
		if f.Create.WritesPerObject < 3 || f.Create.WritesPerObject > 3.5 || f.Neighbor.Changes == 0 || f.NeighborAlone.Changes == 0 || f.NeighborFailures > 0 {
			t.Errorf("got %+v", f)
		}
		if of, all := f.NeighborOfLoad.Changes+f.NeighborOfOperator.Changes, f.Neighbor.Changes; of != all || f.NeighborOfLoad.Changes == 0 {
			t.Errorf("%d of %d requests are beside the load or the operator: %+v", of, all, f)
		}
	}
	measured.printNeighbors(&out)
}
