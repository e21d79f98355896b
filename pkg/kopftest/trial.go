package kopftest

import (
	"context"
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/sweep"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// trial is one run of a scenario in a sweep.
type trial struct {
	rules *sweepRules
	// place is the write with the fault, and quiet is the run without faults. Both are nil in
	// the run without faults itself.
	place *place
	quiet *trial

	harness *Harness
	struck  atomic.Bool
	// states and times are those when the scenario has waited; end is the last state.
	states  []sweep.State
	times   []time.Time
	end     sweep.State
	given   bool // up: it does not recover
	settles int
	effects map[string]int
	writes  []Write
}

// place is one write, and its fault.
type place struct {
	fault sweep.Fault
	write Write // as in the run without faults
}

func (tr *trial) apply(o *options) { o.trial = tr }

// striker returns the function that sends the write of the trial under its fault.
func (tr *trial) striker(one *instance) func(Write, *http.Request) (*http.Response, error, bool) {
	if tr.place == nil {
		return nil
	}
	return func(w Write, request *http.Request) (*http.Response, error, bool) {
		wanted := tr.place.write
		if w.Object != wanted.Object || w.Number != wanted.Number || tr.struck.Swap(true) {
			return nil, nil, false
		}
		world := sweep.World{Send: one.link.next, Kill: one.kill, Touch: tr.harness.runs.server.Touch}
		tr.harness.recording.add(func(r *recording) { r.tell("FAULT: ", tr.place) })
		response, err := tr.place.fault.Strike(world, request)
		return response, err, true
	}
}

// settled is called when the scenario has waited. After a fault, it lets time pass until the
// operator is as far as without the fault, so that retries have no influence on what the
// scenario does next.
func (tr *trial) settled() {
	if tr.quiet == nil {
		tr.states = append(tr.states, tr.state())
		tr.times = append(tr.times, time.Now())
		return
	}
	if tr.rules.clocked {
		tr.harness.runs.wait(tr.untilSameTime(0))
		tr.settles++
		return
	}
	number := tr.settles
	tr.settles++
	if !tr.struck.Load() || tr.given || number >= len(tr.quiet.states) {
		return
	}
	wanted := tr.quiet.states[number]
	step := time.Second
	for waited := time.Duration(0); waited < tr.rules.recovery; waited += step {
		if tr.state().Equals(wanted) {
			return
		}
		step = min(2*step, recoveryStep)
		tr.harness.runs.wait(step)
	}
	tr.given = !tr.state().Equals(wanted)
}

// untilSameTime returns how long the scenario must wait to be where it was without the fault, for runs that are compared
// at the same times. For others, it is as long as given. The bubbles of all runs begin at the same time.
func (tr *trial) untilSameTime(d time.Duration) time.Duration {
	if tr.quiet == nil || !tr.rules.clocked || tr.settles >= len(tr.quiet.times) {
		return d
	}
	return max(0, time.Until(tr.quiet.times[tr.settles]))
}

// recoveryStep is the time between two looks at an operator that recovers.
const recoveryStep = 30 * time.Second

// finish ends the scenario.
func (tr *trial) finish(t *testing.T) {
	t.Helper()
	if tr.harness == nil {
		t.Fatal("the scenario of kopftest.Sweep must call kopftest.New with the option that it is given")
	}
	tr.given = false
	tr.harness.Settle()
	tr.end = tr.state()
	tr.effects = tr.harness.recording.countEffects()
	tr.writes = tr.harness.Writes()
}

// state returns what is on the API server now.
func (tr *trial) state() sweep.State {
	view := sweep.View{Strip: tr.harness.runs.strip, Progress: tr.harness.runs.progressOf, Ignored: tr.rules.ignored}
	return view.Take(tr.harness.runs.server.Objects())
}

// strip returns an object without what the operator keeps in its annotations and its status.
func (r *runs) strip(raw map[string]any) map[string]any {
	stores := r.latest.Persistence
	extra := []object.Path{{"metadata", "annotations"}, {"status"}}
	essence := stores.Progress.Clear(stores.DiffBase.Build(object.NewBody(raw), extra))
	stripped := maps.Clone(raw)
	replaceIn(stripped, "status", essence["status"])
	if metadata, ok := raw["metadata"].(map[string]any); ok {
		kept, _ := essence["metadata"].(map[string]any)
		metadata = maps.Clone(metadata)
		replaceIn(metadata, "annotations", kept["annotations"])
		replaceIn(metadata, "labels", withoutOwnerLabel(metadata["labels"]))
		stripped["metadata"] = metadata
	}
	return stripped
}

// withoutOwnerLabel returns the labels of a child without the hash of its parent's uid. The owner
// reference is compared nevertheless.
func withoutOwnerLabel(labels any) any {
	present, _ := labels.(map[string]any)
	rest := maps.Clone(present)
	delete(rest, convergence.OwnerLabel)
	if len(rest) == 0 {
		return nil
	}
	return rest
}

func replaceIn(into map[string]any, key string, value any) {
	delete(into, key)
	if value != nil {
		into[key] = value
	}
}

// progressOf returns how far the operator is with an object: what it has handled last, and
// the names of what it keeps in the annotations and the status for handlers that have not
// ended.
func (r *runs) progressOf(raw map[string]any) any {
	body := object.NewBody(raw)
	base, err := r.latest.Persistence.DiffBase.Fetch(context.Background(), body)
	if err != nil {
		return err.Error()
	}
	annotations, _ := nested(raw, "metadata", "annotations")
	kept, _ := nested(r.strip(raw), "metadata", "annotations")
	names := map[string]any{}
	for name := range annotations {
		if _, isKept := kept[name]; !isKept {
			names[name] = true
		}
	}
	return map[string]any{"base": base, "names": names}
}

func nested(raw map[string]any, outer, inner string) (map[string]any, bool) {
	parent, _ := raw[outer].(map[string]any)
	found, ok := parent[inner].(map[string]any)
	return found, ok
}
