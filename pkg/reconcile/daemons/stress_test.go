package daemons_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
)

// changingObject is the Host of an object that keeps changing.
type changingObject struct {
	*world
	group      *daemons.Group
	handlers   []*handler.Declaration
	running    [2]atomic.Int32
	overlapped atomic.Bool
	calls      atomic.Int32
}

// Requeue does nothing: passes follow anyway.
func (r *changingObject) Requeue()                                  {}
func (r *changingObject) Identity() daemons.Identity                { return daemons.Identity{} }
func (r *changingObject) Warn(*handler.Declaration, string, string) {}

// busy takes some time, and notes overlapping calls.
func (r *changingObject) busy(which int, d time.Duration) {
	if r.running[which].Add(1) > 1 {
		r.overlapped.Store(true)
	}
	r.calls.Add(1)
	time.Sleep(d)
	r.running[which].Add(-1)
}

func newChangingObject(w *world, random *rand.Rand) *changingObject {
	r := &changingObject{world: w}
	r.group = w.supervisor.NewGroup(r)
	slow, quick := time.Duration(random.IntN(3000))*time.Millisecond, time.Duration(random.IntN(3000))*time.Millisecond
	r.handlers = []*handler.Declaration{
		w.daemon("daemon", func(_ context.Context, t *handler.Call) error {
			r.busy(0, slow)
			if t.Wait(quick) {
				return nil
			}
			return handler.Temporary(errNetwork, quick)
		}, handler.CancellationTimeout(slow)),
		w.timer("timer", func(context.Context, *handler.Call) error { r.busy(1, quick); return nil },
			handler.Interval(slow), handler.Idle(quick)),
	}
	return r
}

// change changes the object at random for ten minutes, and then deletes it.
func (r *changingObject) change(random *rand.Rand) {
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); {
		r.group.Sync(r.handlers[random.IntN(3):], random.IntN(2) == 0)
		if random.IntN(20) == 0 {
			r.supervisor.Pause()
		} else {
			r.supervisor.Resume()
		}
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
	}
	r.group.Stop(stop.Deleted)
}

// Whatever happens, no handler runs twice at the same time, and deleted objects leave
// nothing in memory.
func TestStress(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var groups []weak.Pointer[daemons.Group]
		for i := range 100 {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			r := newChangingObject(w, random)
			groups = append(groups, weak.Make(r.group))
			go func() {
				r.change(random)
				if r.calls.Load() < 50 || r.overlapped.Load() {
					t.Errorf("object %d: %d calls, overlapping: %v", i, r.calls.Load(), r.overlapped.Load())
				}
			}()
		}
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		runtime.GC()
		for i, group := range groups {
			if group.Value() != nil {
				t.Fatalf("object %d is still in memory", i)
			}
		}
	})
}
