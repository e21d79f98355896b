package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/test/testenv"
)

const (
	// calm is how long nothing happens when no work is left.
	calm = 250 * time.Millisecond
	// patience is the maximum duration of a stage.
	patience = 20 * time.Second
	// stallPatience is how long a watch is held back at most, if the stage cannot end
	// without it.
	stallPatience = 2 * time.Second
)

// run is a running experiment.
type run struct {
	t         testing.TB
	plan      plan
	scenario  *scenario
	object    *unstructured.Unstructured
	history   *history
	operators []*operator
	names     int

	crashed   chan struct{} // an operator must be replaced
	takeovers chan handover // another operator must start

	standby *operator // has not taken over yet
	leader  string    // the leader until then

	past     atomic.Bool  // the fault has happened
	inFlight atomic.Int32 // writes without a response that are not held back

	mu    sync.Mutex
	fired bool // the fault has begun to happen
	// heldAtEnd is set if the object had our finalizer when another client deleted it.
	heldAtEnd bool
	late      *write // to be committed before the next one
	stale     []byte // an outdated list, for requests that accept any version
}

// outcome is the result of an experiment: the essential state after every stage, the calls of
// the handlers, and the number of writes. A fault can affect every request to write, including
// dry runs.
type outcome struct {
	stages   []map[string]any
	starts   []start
	requests int
	writes   int
	// breaches are the violations of the guarantees.
	breaches []string
}

// play runs an experiment. Any violation of the guarantees fails the test.
func play(t testing.TB, p plan) outcome {
	t.Helper()
	s := scenarios[p.scenario]
	r := &run{
		t: t, plan: p, scenario: &s, history: newHistory(&s),
		object:  testenv.NewObject(s.kindName(), cluster.Namespace(t), "one", map[string]any{"field": "old"}),
		crashed: make(chan struct{}, 1), takeovers: make(chan handover, 1),
	}
	t.Cleanup(r.report)
	if faults[p.fault].standby {
		r.startReplicas()
	} else {
		r.start()
	}
	var result outcome
	for _, stage := range s.stages() {
		r.history.note("--- %s", stage.name)
		stage.act(r)
		r.settle(stage)
		if end := faults[p.fault].end; end != nil && r.past.Load() {
			end.verify(r)
			break
		}
		result.stages = append(result.stages, r.look(stage))
	}
	return r.history.concluded(result)
}

func (r *run) report() {
	if r.t.Failed() || os.Getenv("KOPF_FAULT_HISTORY") != "" {
		r.t.Logf("replay: go test ./test/faults -plan %s\n%s", r.plan, r.history)
	}
}

// write counts a write, and applies the fault of the plan to it.
func (r *run) write(w *write) (*http.Response, error) {
	r.history.attempted(w)
	r.inFlight.Add(1)
	defer r.inFlight.Add(-1)
	r.mu.Lock()
	late := r.late
	r.late = nil
	fires := !r.fired && w.number == r.plan.write
	r.fired = r.fired || fires
	r.mu.Unlock()
	if late != nil {
		_, _ = late.commit()
	}
	if !fires {
		return w.commit()
	}
	defer r.past.Store(true)
	return faults[r.plan.fault].at(r, w)
}

// handover requests another operator, and is done when that has finished its work.
type handover struct {
	midway bool // done as soon as it has started
	done   chan struct{}
}

// handOver holds a write back until another operator has done all the work, or is in the
// middle of it.
func (r *run) handOver(w *write, midway bool) {
	r.history.note("#%d is held back", w.number)
	h := handover{midway, make(chan struct{})}
	r.inFlight.Add(-1)
	defer r.inFlight.Add(1)
	r.takeovers <- h
	<-h.done
	for midway && !r.history.hasWritten(w.operator.name) {
		<-time.After(time.Millisecond)
	}
	r.history.overlaps()
	r.history.note("#%d goes on", w.number)
}

// settle waits until the stage has ended and nothing happens anymore.
func (r *run) settle(s stage) {
	began, released := time.Now(), false
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.crashed:
			r.start()
			continue
		case h := <-r.takeovers:
			r.start()
			if !h.midway {
				r.settle(s)
			}
			r.history.note("%s has taken over", r.operators[len(r.operators)-1].name)
			close(h.done)
			began = time.Now()
			continue
		case <-tick.C:
			r.bury()
		}
		if r.awaited() {
			began = time.Now()
			continue
		}
		over := r.atRest() && r.reached(s) && r.atRest()
		switch {
		case (over || time.Since(began) > stallPatience) && !released:
			released = true
			if r.openWatches() {
				r.history.note("the watch goes on")
			} else if over {
				return
			}
		case over:
			return
		case time.Since(began) > patience:
			r.t.Fatalf("%s: the stage %q has not ended after %s:\n%v", r.plan, s.name, patience, r.whole())
		}
	}
}

// atRest reports whether nothing has happened for a while.
func (r *run) atRest() bool { return r.inFlight.Load() == 0 && r.history.quiet() > calm }

func (r *run) openWatches() bool {
	opened := false
	for _, o := range r.operators {
		opened = o.watches.open() || opened
	}
	return opened
}

// reached reports whether the stage has ended.
func (r *run) reached(s stage) bool {
	now := r.now()
	if now.body != nil && now.released() && contains(now.body.Finalizers(), otherFinalizer) {
		r.letGo(otherFinalizer)
		return false
	}
	if end := faults[r.plan.fault].end; end != nil && r.past.Load() {
		return end.reached(r, now)
	}
	return s.reached(r, now)
}

// look returns the essential state of the object, and checks the changes by others.
func (r *run) look(s stage) map[string]any {
	now := r.now()
	if now.body == nil {
		return nil
	}
	r.check(s, r.history.others.missing(now))
	if s.reason != "" {
		r.history.judgeChange(s.reason)
	}
	if r.scenario.check != nil {
		r.check(s, r.scenario.check(now))
	}
	return now.essential()
}

func (r *run) check(s stage, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Errorf("%s: at the end of %q: %v", r.plan, s.name, err)
	}
}

// now returns the object from the API server.
func (r *run) now() state {
	obj, err := r.current()
	if err != nil {
		if !apierrors.IsNotFound(err) {
			r.t.Errorf("reading the object: %v", err)
		}
		return state{}
	}
	content, err := json.Marshal(obj)
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := newState(content)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *run) current() (*unstructured.Unstructured, error) { return cluster.Current(r.object)() }

func (r *run) whole() string {
	obj, err := r.current()
	if err != nil {
		return err.Error()
	}
	text, _ := json.MarshalIndent(obj, "", "  ")
	return string(text)
}

func (r *run) nextName() string {
	r.names++
	return fmt.Sprintf("operator %d", r.names)
}
