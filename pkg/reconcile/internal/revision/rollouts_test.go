package revision

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/rollout"
)

// world has the rollout of one handler, and what it has asked for.
type world struct {
	Rollouts
	handler  Handler
	enqueued []string
	reports  []string
}

func newWorld(plan rollout.Plan) *world {
	w := &world{handler: Handler{Resource: "kex", ID: "fn", Revision: "2", Plan: plan}}
	w.Enqueue = func(key object.Key) { w.enqueued = append(w.enqueued, key.Name) }
	w.Report = func(r Report) {
		w.reports = append(w.reports, fmt.Sprintf("%d %s: %d waiting, %d running, %d done, %d failed", r.Kind, r.Object.Name, r.Waiting, r.Running, r.Done, r.Failed))
	}
	return w
}

func keyOf(n int) object.Key {
	return object.Key{Resource: "kex", NamespacedName: types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("o%02d", n)}}
}

func (w *world) begin(count int) {
	states := map[object.Key]State{}
	for n := range count {
		states[keyOf(n)] = Waiting
	}
	w.Begin(w.handler, states)
}

func (w *world) expect(t *testing.T, got *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(*got, "\n"), strings.Join(want, "\n"))
	}
	*got = nil
}

var twoSteps = rollout.Plan{{Objects: 2}, {Percent: 30}}

func TestStepsBeginWhenTheEarlierOnesAreDone(t *testing.T) {
	w := newWorld(twoSteps)
	w.begin(10)
	w.expect(t, &w.enqueued, "o00", "o01")
	w.Set(w.handler, keyOf(1), Done)
	w.Set(w.handler, keyOf(1), Done)
	w.Set(w.handler, keyOf(0), Running)
	w.Set(w.handler, keyOf(0), Waiting) // it was seen, before it has begun
	w.expect(t, &w.enqueued)
	w.Set(w.handler, keyOf(0), Done)
	w.expect(t, &w.enqueued, "o02", "o03", "o04")
	w.expect(t, &w.reports, "0 : 8 waiting, 2 running, 0 done, 0 failed", "0 : 5 waiting, 3 running, 2 done, 0 failed")
	for n := range 10 {
		w.Set(w.handler, keyOf(n), Done)
	}
	w.expect(t, &w.enqueued, "o05", "o06", "o07", "o08", "o09")
	w.expect(t, &w.reports, "0 : 2 waiting, 3 running, 5 done, 0 failed", "0 : 0 waiting, 2 running, 8 done, 0 failed", "3 : 0 waiting, 0 running, 10 done, 0 failed")
}

func TestAFailureStopsARollout(t *testing.T) {
	w := newWorld(twoSteps)
	w.begin(4)
	w.Set(w.handler, keyOf(0), Failed)
	w.Set(w.handler, keyOf(1), Done)
	w.Set(w.handler, keyOf(9), Done) // a new object
	w.expect(t, &w.enqueued, "o00", "o01")
	w.expect(t, &w.reports, "0 : 2 waiting, 2 running, 0 done, 0 failed", "1 o00: 2 waiting, 1 running, 0 done, 1 failed")
	if !w.isRunningNone() {
		t.Error("an object may begin")
	}
	w.Set(w.handler, keyOf(0), Done)
	w.expect(t, &w.enqueued, "o02")
	w.Set(w.handler, keyOf(2), Failed)
	w.Set(w.handler, keyOf(3), Excluded) // it was deleted
	w.expect(t, &w.reports, "2 : 1 waiting, 1 running, 3 done, 0 failed", "0 : 1 waiting, 1 running, 3 done, 0 failed",
		"1 o02: 1 waiting, 0 running, 3 done, 1 failed", "3 o02: 0 waiting, 0 running, 3 done, 1 failed")
}

func (w *world) isRunningNone() bool {
	return !slices.ContainsFunc([]int{0, 1, 2, 3}, func(n int) bool { return w.isRunning(w.handler, keyOf(n)) })
}

func TestObjectsThatAreGoneMakeRoom(t *testing.T) {
	w := newWorld(rollout.Plan{{Objects: 1}})
	w.begin(2)
	w.expect(t, &w.enqueued, "o00")
	w.Forget(keyOf(0))
	w.expect(t, &w.enqueued, "o01")
	w.Forget(keyOf(5))
	w.Clear()
	w.Forget(keyOf(1))
	w.Set(w.handler, keyOf(1), Waiting)
	if numbers := w.Numbers(); len(numbers) != 0 || w.isRunning(w.handler, keyOf(1)) {
		t.Errorf("got %+v", numbers)
	}
}

// A process that ends at any time, and another one that begins with what is stored, never let
// more objects begin than one process does, and reach all of them.
func TestRestartsChangeNothing(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		plan := rollout.Plan{{Objects: 1 + random.IntN(4)}, {Percent: 1 + random.IntN(50)}}
		const count = 25
		stored := map[object.Key]State{}
		for n := range count {
			stored[keyOf(n)] = Waiting
		}
		w := newWorld(plan)
		w.Begin(w.handler, stored)
		for ended := 0; ended < count; {
			if random.IntN(5) == 0 {
				w = newWorld(plan)
				w.Begin(w.handler, stored)
			}
			var running []object.Key
			for n := range count {
				if w.isRunning(w.handler, keyOf(n)) {
					running = append(running, keyOf(n))
				}
			}
			_, limit := plan.Limit(count, ended, 0)
			if len(running) == 0 || ended+len(running) > limit {
				t.Fatalf("seed %d: %d have ended, %d are running, and the limit is %d", seed, ended, len(running), limit)
			}
			key := running[random.IntN(len(running))]
			stored[key] = Done
			w.Set(w.handler, key, Done)
			ended++
		}
	}
}
