package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// tale makes a history in which everything is as it must be, unless a test spoils it.
type tale struct {
	events  []event
	version int
	process int
	results map[string]any // of the successful calls
	free    bool           // without a finalizer
	deleted bool
}

// stored adds a version. The annotations have short names.
func (t *tale) stored(step int64, annotations map[string]any) {
	t.version++
	long := map[string]any{}
	for name, text := range annotations {
		long[prefix+name] = text
	}
	metadata := map[string]any{"name": "one", "resourceVersion": number(ptr(int64(t.version))), "annotations": long}
	if !t.free {
		metadata["finalizers"] = []any{finalizer}
	}
	if t.deleted {
		metadata["deletionTimestamp"] = "2000-01-01T00:00:00Z"
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"metadata": metadata,
		"spec":     map[string]any{"step": step, "a": step},
		"status":   maps.Clone(t.results),
	}}
	t.events = append(t.events, event{at: time.Unix(int64(len(t.events)), 0), process: t.process, object: "one", version: newVersion(obj)})
}

// called adds a call that sees the last version. Without an outcome, it is interrupted.
func (t *tale) called(id, reason string, retry int, before *int64, step int64, outcome string) {
	c := call{
		Process: t.process, Phase: "start", Handler: id, Name: "one", Reason: reason, Retry: retry,
		Version: number(ptr(int64(t.version))), Step: step, Old: before, New: &step,
	}
	end := c
	end.Phase, end.Outcome = "end", outcome
	t.events = append(t.events, event{at: time.Unix(int64(len(t.events)), 0), process: t.process, object: "one", call: &c})
	if outcome == "success" {
		t.results[id] = map[string]any{"step": step}
	}
	if outcome != "" {
		t.events = append(t.events, event{at: time.Unix(int64(len(t.events)), 0), process: t.process, object: "one", call: &end})
	}
}

// twice adds two steps for the changes from 1 to 2 and from 3 to 4, and only the first one, with an outcome, in between.
func (t *tale) twice(outcome string, done map[string]any) {
	for _, step := range []int64{2, 4} {
		base := maps.Clone(done)
		base[baseName] = fmt.Sprintf(`{"spec":{"step":%d}}`, step-1)
		t.stored(step, base)
		t.called("first", "update", 0, ptr(step-1), step, "success")
		base = maps.Clone(base)
		base["first"] = success
		t.stored(step, base)
		t.called("second", "update", 0, ptr(step-1), step, "success")
		t.stored(step, map[string]any{baseName: fmt.Sprintf(`{"spec":{"step":%d}}`, step)})
		if step == 2 {
			t.stored(3, map[string]any{baseName: baseOf2})
			t.called("first", "update", 0, ptr(2), 3, outcome)
			t.stored(3, map[string]any{baseName: `{"spec":{"step":3}}`})
		}
	}
}

// ran adds a call of the timer.
func (t *tale) ran(at, outcome string) {
	for _, phase := range []string{"start", "end"} {
		c := call{Process: t.process, Phase: phase, Handler: "backup", Name: "one", Run: "2000-01-01T" + at + "Z"}
		if phase == "end" {
			c.Outcome = outcome
		}
		t.events = append(t.events, event{at: time.Unix(int64(len(t.events)), 0), process: t.process, object: "one", call: &c})
	}
}

func (t *tale) gone() {
	t.version++
	t.events = append(t.events, event{object: "one", version: &version{number: uint64(t.version), gone: true}}) //nolint:gosec // small
}

func ptr(n int64) *int64 { return &n }

const (
	baseOf1 = `{"spec":{"step":1}}`
	baseOf2 = `{"spec":{"step":2}}`
	success = `{"purpose":"update","retries":1,"success":true}`
	retried = `{"purpose":"update","retries":1}`
	failure = `{"purpose":"update","retries":1,"failure":true}`
	skipped = `{"purpose":"update","retries":0,"success":true,"message":"its turn never comes: x"}`
	run0    = `{"started":"2000-01-01T00:00:00+00:00","retries":1,"success":true}`
	run1    = `{"started":"2000-01-01T00:01:00+00:00","retries":1,"success":true}`
)

func TestOracle(t *testing.T) {
	none := map[string]any{baseName: baseOf1}
	done := map[string]any{baseName: baseOf2}
	tests := map[string]struct {
		tell func(*tale)
		kopf bool
		want string // a part of the only finding
	}{
		"an update with a retry": {func(t *tale) {
			t.called("both", "update", 0, ptr(1), 2, "temporary")
			t.stored(2, map[string]any{baseName: baseOf1, "both": retried})
			t.process = 2
			t.called("both", "update", 1, ptr(1), 2, "success")
			t.stored(2, done)
		}, false, ""},
		"a call whose end is not stored before the kill": {func(t *tale) {
			t.called("both", "update", 0, ptr(1), 2, "success")
			t.process = 2
			t.called("both", "update", 0, ptr(1), 2, "success")
			t.stored(2, done)
		}, false, ""},
		"a call in spite of the record that it sees": {func(t *tale) {
			t.called("both", "update", 0, ptr(1), 2, "success")
			t.stored(2, map[string]any{baseName: baseOf1, "both": success})
			t.called("both", "update", 1, ptr(1), 2, "success")
			t.stored(2, done)
		}, true, "its end is recorded"},
		"a call after the end of the cycle": {func(t *tale) {
			t.called("both", "update", 0, ptr(1), 2, "success")
			t.stored(2, done)
			t.process = 2
			t.called("both", "update", 0, ptr(1), 2, "success")
			t.stored(2, done)
		}, true, "it is called again"},
		"attempts that are forgotten": {func(t *tale) {
			t.called("both", "update", 0, ptr(1), 2, "temporary")
			t.stored(2, map[string]any{baseName: baseOf1, "both": retried})
			t.called("both", "update", 0, ptr(1), 2, "success")
			t.stored(2, done)
		}, false, "has 1 attempts"},
		"a retry that comes too early": {func(t *tale) {
			t.called("both", "update", 0, ptr(1), 2, "temporary")
			t.stored(2, map[string]any{baseName: baseOf1, "both": `{"purpose":"update","retries":1,"delayed":"2000-01-01T00:00:00+00:00"}`})
			t.called("both", "update", 1, ptr(1), 2, "success")
			t.stored(2, done)
		}, false, "too early"},
		"a retry that is lost": {func(t *tale) {
			t.called("both", "update", 0, ptr(1), 2, "temporary")
			t.stored(2, done)
		}, true, "is not called again"},
		"a change that is missed": {func(t *tale) {
			t.called("both", "update", 0, ptr(1), 2, "success")
			t.stored(2, done)
			t.stored(4, done)
			t.called("both", "update", 0, ptr(3), 4, "success")
			t.stored(4, map[string]any{baseName: `{"spec":{"step":4}}`})
		}, false, "with the change from 3 to 4 after that to 2"},
		"a record that is left": {func(t *tale) {
			t.called("both", "update", 0, ptr(1), 2, "success")
			t.stored(2, map[string]any{baseName: baseOf2, "update": retried})
		}, false, "the record of update is left"},
		"a record that cannot be read": {func(t *tale) {
			t.stored(2, map[string]any{baseName: baseOf1, "both": "{"})
			t.called("both", "update", 0, ptr(1), 2, "success")
			t.stored(2, done)
		}, false, "cannot be read"},
		"a state that is not handled": {func(t *tale) { t.stored(2, none) }, true, "the last handled state is of step 1"},
		"a cycle that is left open": {func(t *tale) {
			t.called("both", "update", 0, ptr(1), 2, "success")
			t.stored(2, map[string]any{baseName: baseOf2, cycleName: `{"cycle":"1","first":` + baseOf2 + `}`})
		}, true, "the annotation of the open cycle is left"},
		"a result that is lost": {func(t *tale) {
			t.called("both", "update", 0, ptr(1), 2, "success")
			delete(t.results, "both")
			t.stored(2, done)
		}, true, "the result of both is <nil>"},
		"a status that the handlers did not return": {func(t *tale) {
			t.results["kopf"] = map[string]any{}
			t.stored(1, none)
		}, true, "the status has kopf"},
		"a deletion": {func(t *tale) {
			t.deleted = true
			t.stored(1, none)
			t.called("delete_one", "delete", 0, nil, 1, "success")
			t.called("delete_two", "delete", 0, nil, 1, "permanent")
			t.gone()
		}, false, ""},
		"a deletion that does not wait for its handlers": {func(t *tale) {
			t.deleted = true
			t.stored(1, none)
			t.called("delete_one", "delete", 0, nil, 1, "success")
			t.gone()
		}, false, "it is gone before delete_two has ended"},
		"a deletion that does not end": {func(t *tale) {
			t.deleted = true
			t.stored(1, none)
		}, false, "its deletion has not ended"},
		"steps in their order": {func(t *tale) {
			t.called("first", "update", 0, ptr(1), 2, "success")
			t.stored(2, map[string]any{baseName: baseOf1, "first": success})
			t.called("second", "update", 0, ptr(1), 2, "permanent")
			t.stored(2, map[string]any{baseName: baseOf1, "first": success, "second": failure})
			t.called("rescue", "update", 0, ptr(1), 2, "success")
			t.stored(2, map[string]any{baseName: baseOf1, "first": success, "second": failure, "rescue": success})
			t.called("again", "update", 0, ptr(1), 2, "success")
			t.stored(2, done)
		}, false, ""},
		"a step that is skipped, and called for the next change": {func(t *tale) { t.twice("permanent", done) }, false, ""},
		"a step that misses a change":                            {func(t *tale) { t.twice("success", done) }, false, "second of update, retry 0, step 4: it is called with the change from 3 to 4 after that to 2"},
		"a step before the one that it follows": {func(t *tale) {
			t.called("second", "update", 0, ptr(1), 2, "success")
			t.stored(2, map[string]any{baseName: baseOf1, "second": success})
			t.called("first", "update", 0, ptr(1), 2, "success")
			t.stored(2, done)
		}, false, "first has not succeeded"},
		"a step after a failure": {func(t *tale) {
			t.called("first", "update", 0, ptr(1), 2, "permanent")
			t.stored(2, map[string]any{baseName: baseOf1, "first": failure})
			t.called("second", "update", 0, ptr(1), 2, "success")
			t.stored(2, done)
		}, false, "first has not succeeded"},
		"a way back without a failure": {func(t *tale) {
			t.called("rescue", "update", 0, ptr(1), 2, "success")
			t.stored(2, done)
		}, false, "none of first, second has failed"},
		"a step that is skipped without a reason": {func(t *tale) {
			t.stored(2, map[string]any{baseName: baseOf1, "first": success, "second": skipped})
			t.stored(2, done)
		}, true, "second is skipped in version 2, in which first has not failed"},
		"a way back that is skipped without a reason": {func(t *tale) {
			t.stored(2, map[string]any{baseName: baseOf1, "first": success, "second": failure, "rescue": skipped})
			t.stored(2, done)
		}, true, "rescue is skipped in version 2"},
		"runs": {func(t *tale) {
			t.stored(1, map[string]any{baseName: baseOf1, runName: run0})
			t.ran("00:01:00", "temporary")
			t.ran("00:01:00", "success")
			t.stored(1, map[string]any{baseName: baseOf1, runName: run1})
			t.process = 2
			t.ran("00:02:00", "success")
		}, false, ""},
		"a run again": {func(t *tale) {
			t.stored(1, map[string]any{baseName: baseOf1, runName: run1})
			t.process = 2
			t.ran("00:01:00", "success")
		}, false, "the run is stored already"},
		"a run that is left out": {func(t *tale) {
			t.stored(1, map[string]any{baseName: baseOf1, runName: run0})
			t.ran("00:02:00", "success")
			t.stored(1, map[string]any{baseName: baseOf1, runName: strings.ReplaceAll(run1, "00:01:00", "00:02:00")})
		}, false, "is stored after that of"},
		"a run without a call": {func(t *tale) {
			t.stored(1, map[string]any{baseName: baseOf1, runName: run0})
			t.stored(1, map[string]any{baseName: baseOf1, runName: run1})
		}, false, "its last call has the outcome"},
		"a run that is lost": {func(t *tale) {
			t.stored(1, map[string]any{baseName: baseOf1, runName: run0})
			t.stored(1, none)
		}, false, "has lost the last run"},
		"a finalizer that is removed too early": {func(t *tale) {
			t.free = true
			t.stored(1, none)
			t.gone()
		}, false, "has lost the finalizer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tale := &tale{process: 1, results: map[string]any{}}
			tale.stored(1, none)
			test.tell(tale)
			var kopf map[int]bool
			if test.kopf {
				kopf = map[int]bool{99: true} // another one
			}
			found := newJudge(tale.events, kopf, kopf).judge()
			text := strings.Join(found, "\n")
			if test.want == "" && text != "" || !strings.Contains(text, test.want) || len(found) > 1 {
				t.Errorf("got %q, want %q", text, test.want)
			}
		})
	}
}

// TestKnownRepetitions expects that calls that are repeated because Kopf takes part have an excuse, and
// that they have none without Kopf.
func TestKnownRepetitions(t *testing.T) {
	ahead := map[string]any{baseName: baseOf1, cycleName: `{"cycle":"9","first":` + baseOf1 + `,"states":[` + baseOf2 + `],"at":{"both":0}}`}
	deleted := map[string]any{baseName: baseOf1, "delete_one": `{"purpose":"delete","retries":1,"success":true}`, "both": retried}
	tests := map[string]struct {
		tell func(*tale)
		kopf int // the process
		want string
	}{
		aheadOfKopf: {func(t *tale) {
			t.called("both", "update", 0, ptr(1), 2, "success")
			t.stored(2, ahead)
			t.process = 2
			t.called("both", "update", 0, ptr(1), 2, "success")
			t.stored(2, map[string]any{baseName: baseOf2})
		}, 2, aheadOfKopf},
		forgottenByKopf: {func(t *tale) {
			t.deleted = true
			t.stored(1, map[string]any{baseName: baseOf1, "both": retried})
			t.called("delete_one", "delete", 0, nil, 1, "success")
			t.stored(1, deleted)
			t.process = 2
			t.called("delete_two", "delete", 0, nil, 1, "success")
			t.stored(1, map[string]any{baseName: baseOf1})
			t.called("delete_one", "delete", 0, nil, 1, "success")
			t.gone()
		}, 2, forgottenByKopf},
		forgottenByKopf + " that has made the call": {func(t *tale) {
			t.deleted = true
			t.stored(1, map[string]any{baseName: baseOf1, "both": retried})
			t.called("delete_one", "delete", 0, nil, 1, "success")
			t.stored(1, deleted)
			t.stored(1, map[string]any{baseName: baseOf1})
			t.process = 2
			t.called("delete_one", "delete", 0, nil, 1, "success")
			t.called("delete_two", "delete", 0, nil, 1, "success")
			t.gone()
		}, 1, forgottenByKopf},
		keptByKopf: {func(t *tale) {
			t.deleted = true
			t.stored(1, map[string]any{baseName: `{"spec":{"step":0}}`})
			t.called("delete_one", "delete", 0, nil, 1, "success")
			t.called("delete_two", "delete", 0, nil, 1, "success")
			t.stored(1, map[string]any{baseName: baseOf1})
			t.process = 2
			t.called("delete_one", "delete", 0, nil, 1, "success")
			t.called("delete_two", "delete", 0, nil, 1, "success")
			t.gone()
		}, 1, keptByKopf},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tale := &tale{process: 1, results: map[string]any{}}
			tale.stored(1, map[string]any{baseName: `{"spec":{"step":0}}`})
			test.tell(tale)
			j := newJudge(tale.events, map[int]bool{test.kopf: true}, nil)
			if found := j.judge(); len(found) > 0 || j.known[test.want] == 0 {
				t.Errorf("with Kopf: %q, %v", found, j.known)
			}
			if found := newJudge(tale.events, map[int]bool{99: true}, nil).judge(); !strings.Contains(strings.Join(found, "\n"), "it is called again") {
				t.Errorf("without Kopf: %q", found)
			}
		})
	}
}

// TestAProcessResumesOnce expects that only another process resumes again.
func TestAProcessResumesOnce(t *testing.T) {
	for _, again := range []struct {
		process int
		base    string
		want    int
	}{{1, baseOf1, 1}, {2, baseOf1, 0}, {1, baseOf2, 1}} {
		tale := &tale{process: 1, results: map[string]any{"resumed": nil}}
		tale.stored(1, map[string]any{baseName: baseOf1})
		tale.called("resumed", "update", 0, nil, 1, "success")
		tale.stored(1, map[string]any{baseName: baseOf1, "resumed": success})
		tale.stored(1, map[string]any{baseName: again.base})
		tale.process = again.process
		tale.called("resumed", "update", 0, nil, 1, "success")
		tale.stored(1, map[string]any{baseName: baseOf1})
		if found := newJudge(tale.events, nil, nil).judge(); len(found) != again.want {
			t.Errorf("%v: %q", again, found)
		}
	}
}
