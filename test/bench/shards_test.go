package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

// The test checks counts only: times depend on the machine.
func TestReplicasAreMeasured(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var log shared
	arguments := []string{"-shards", "1,2", "-n", "60", "-moved", "90", "-window", "1s", "-pace", "100", "-subjects", sharingFiltered, "-json"}
	if err := run(t.Context(), arguments, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	var measured report
	if err := json.Unmarshal(out.Bytes(), &measured); err != nil || len(measured.Shards) != 1 || len(measured.Shards[0].Replicas) != 2 {
		t.Fatalf("%v\n%s", err, &out)
	}
	f := measured.Shards[0]
	for i, replicas := range f.Replicas {
		if len(replicas.Each) != i+1 || replicas.Create.WritesPerObject != 3 {
			t.Errorf("got %+v", replicas)
		}
		for _, each := range replicas.Each {
			if each.Create <= 0 || each.Loaded.Resident <= 0 {
				t.Errorf("got %+v", each)
			}
		}
	}
	for _, move := range []Move{f.Joined, f.Killed} {
		if move.Objects == 0 || move.TakenOver <= 0 || move.Moving.Changes+move.Others.Changes == 0 {
			t.Errorf("got %+v", move)
		}
	}
	if f.Joined.Replicas != 3 || f.Killed.Replicas != 2 {
		t.Errorf("got %+v", f)
	}
	measured.printShards(&out)
}

func TestNumbersOfReplicasAreChecked(t *testing.T) {
	for _, text := range []string{"0", "x", "1,,2", "13"} {
		if _, err := parseReplicas(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestEvenlyHeldShards(t *testing.T) {
	var held holders
	if held.areEven(1) {
		t.Error("none is held")
	}
	for shard := range held {
		held[shard] = "a"
	}
	if !held.areEven(1) || held.areEven(2) {
		t.Errorf("got %v", held)
	}
	for shard := range shardNumber / 2 {
		held[shard] = "b"
	}
	if !held.areEven(2) || held.areEven(3) {
		t.Errorf("got %v", held)
	}
}

func TestResidentsAreHandledAlready(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var log shared
	if err := run(t.Context(), []string{"-resident", "50", "-n", "20", "-window", "1s", "-memory", "-json"}, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	var measured report
	if err := json.Unmarshal(out.Bytes(), &measured); err != nil || len(measured.Subjects) != 1 {
		t.Fatalf("%v\n%s", err, &out)
	}
	if f := measured.Subjects[0]; f.Restart.Requests.Writes != 0 || f.Restart.FirstChange <= 0 || f.Create.WritesPerObject != 3 || f.Update.WritesPerObject != 2 {
		t.Errorf("got %+v", f)
	}
}
