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

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
)

// restless is an object that never stays as it is.
type restless struct {
	*world
	group      *daemons.Group
	handlers   []*handler.Declaration
	running    [2]atomic.Int32
	overlapped atomic.Bool
	calls      atomic.Int32
}

// Requeue is followed by a pass sooner or later; so is everything here.
func (r *restless) Requeue()                                  {}
func (r *restless) Warn(*handler.Declaration, string, string) {}

// busy takes some time, also to stop.
func (r *restless) busy(which int, d time.Duration) {
	if r.running[which].Add(1) > 1 {
		r.overlapped.Store(true)
	}
	r.calls.Add(1)
	time.Sleep(d)
	r.running[which].Add(-1)
}

func newRestless(w *world, random *rand.Rand) *restless {
	r := &restless{world: w}
	r.group = w.supervisor.NewGroup(r)
	slow, quick := time.Duration(random.IntN(3000))*time.Millisecond, time.Duration(random.IntN(3000))*time.Millisecond
	r.handlers = []*handler.Declaration{
		w.daemon("daemon", func(_ context.Context, t *handler.Task) error {
			r.busy(0, slow)
			if t.Wait(quick) {
				return nil
			}
			return handler.Temporary(errNetwork, quick)
		}, handler.CancellationTimeout(slow)),
		w.timer("timer", func(context.Context, *handler.Tick) error { r.busy(1, quick); return nil },
			handler.Interval(slow), handler.Idle(quick)),
	}
	return r
}

// live changes the object by chance for ten minutes, then deletes it.
func (r *restless) live(random *rand.Rand) {
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); {
		r.group.Sync(r.handlers[random.IntN(3):], random.IntN(2) == 0)
		if random.IntN(20) == 0 {
			r.supervisor.Pause()
		} else {
			r.supervisor.Resume()
		}
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
	}
	r.group.Stop(handler.StopDeleted)
}

// Whatever happens, nothing runs twice at the same time, and nothing is left of
// an object that is gone.
func TestRestlessObjects(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var groups []weak.Pointer[daemons.Group]
		for i := range 100 {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			r := newRestless(w, random)
			groups = append(groups, weak.Make(r.group))
			go func() {
				r.live(random)
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
