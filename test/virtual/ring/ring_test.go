package ring

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kopf-go/kopf/pkg/shards"
	"github.com/kopf-go/kopf/pkg/shards/ring"
)

// A replica joins, another one stops, one is killed, and one is frozen for longer than the Leases last, in any order. In
// half of the seeds, one thing goes wrong at a time. In the others, several do, the API server can be unavailable, and a
// replica of an older configuration would like to lead.
func TestOneReplicaHandlesEachShard(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playHistory(t, seed, seed%2 == 0) })
		})
	}
}

func playHistory(t *testing.T, seed uint64, apart bool) {
	random := rand.New(rand.NewPCG(seed, 1))
	below := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
	w := newWorld(t, 8)
	slow := jittered(rand.New(rand.NewPCG(seed, 2)), 4*time.Second)
	var alive []*replica
	join := func() {
		alive = append(alive, w.start(nameOf(len(w.replicas)), func(r *replica) { r.returnAfter = slow }))
	}
	pick := func() *replica {
		i := random.IntN(len(alive))
		r := alive[i]
		alive = slices.Delete(alive, i, i+1)
		return r
	}
	later := map[time.Time]func(){}
	pass := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); {
			w.advance(time.Second)
			for at, act := range later {
				if !time.Now().Before(at) {
					act()
					delete(later, at)
				}
			}
		}
	}

	stopElection := func() {}
	if !apart {
		pass(below(5 * time.Second))
		stopElection = w.elect()
	}
	for range 3 {
		join()
		pass(below(10 * time.Second))
	}
	join()
	var stopped *replica
	acts := []func(){
		join,
		func() { stopped = pick(); stopped.stop() },
		func() { pick().kill() },
		func() {
			r := pick()
			r.freeze()
			later[time.Now().Add(leaseDuration+below(leaseDuration))] = func() {
				r.thaw()
				alive = append(alive, r)
			}
		},
	}
	longest := leaseDuration + 5*time.Second // without a holder
	if !apart {
		acts = append(acts, w.server.EndWatches, func() {
			w.setDown(true)
			later[time.Now().Add(below(2*leaseDuration))] = func() { w.setDown(false) }
		})
		longest = time.Hour
	}
	for _, i := range random.Perm(len(acts)) {
		acts[i]()
		pause := below(leaseDuration)
		if apart {
			pause += longest
		}
		pass(pause)
	}
	for len(later) > 0 {
		pass(time.Second)
	}
	stopElection()
	pass(45 * time.Second)
	w.expectSettled(alive...)
	if w.longest > longest {
		t.Errorf("a shard was not handled for %s, want at most %s", w.longest, longest)
	}
	if stopped.held().Len() > 0 || stopped.err != nil {
		t.Errorf("a replica that has stopped handles %s: %v", stopped.held(), stopped.err)
	}
	w.end()
}

// forever makes the replica never return a shard.
func forever(shard int) func(*replica) {
	return func(r *replica) {
		r.returnAfter = func(returned int, _ error) time.Duration {
			if returned == shard {
				<-r.finish
			}
			return 0
		}
	}
}

func TestShardThatIsNotReturnedIsKeptAndHoldsUpNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 16)
		stuck := slices.Index(shards.Assign(16, []string{"a", "b"}), "b")
		a := w.start("a", forever(stuck))
		w.advance(time.Minute)
		b := w.start("b")
		w.advance(5 * time.Minute)
		want := shards.SetOf(stuck)
		for shard, holder := range shards.Assign(16, []string{"a", "b"}) {
			if holder == "a" {
				want = want.With(shard)
			}
		}
		if !a.held().Equal(want) || b.held().Len() != 7 {
			t.Errorf("a handles %s, want %s; b handles %s", a.held(), want, b.held())
		}
		if state := a.ring.State().Shards[stuck]; !state.Handled || time.Since(state.Draining) < 4*time.Minute || state.Holder != "a" {
			t.Errorf("got %+v", state)
		}
		if h := a.holdOf(stuck); !errors.Is(h.cause, ring.ErrMoved) {
			t.Errorf("the cause is %v", h.cause)
		}
		a.stop()
		w.advance(5 * time.Minute)
		if !a.held().Equal(shards.SetOf(stuck)) || b.held().Len() != 15 {
			t.Errorf("a handles %s, and b handles %s", a.held(), b.held())
		}
		a.kill() // the end of its process
		w.advance(leaseDuration + 5*time.Second)
		w.expectSettled(b)
		w.end()
	})
}

// A shard that is given up is not kept when its replica should have it again: its handlers have stopped.
func TestDrainIsFinishedAlthoughTheShardMovesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 16)
		a := w.start("a", func(r *replica) {
			r.returnAfter = func(int, error) time.Duration { return time.Minute }
		})
		w.advance(10 * time.Second)
		b := w.start("b")
		w.advance(10 * time.Second)
		b.stop()
		w.advance(10 * time.Second)
		moves := slices.Index(shards.Assign(16, []string{"a", "b"}), "b")
		if h := a.holdOf(moves); h == nil || !errors.Is(h.cause, ring.ErrMoved) {
			t.Errorf("shard %d is held: %+v", moves, h)
		}
		w.advance(time.Minute)
		w.expectSettled(a)
		if h := a.holdOf(moves); h.cause != nil || time.Since(h.since) > 45*time.Second {
			t.Errorf("got %+v", h)
		}
		w.end()
	})
}

// leases returns the Leases by their names.
func (w *world) leases() map[string]*coordinationv1.Lease {
	list, err := w.client().CoordinationV1().Leases("default").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	leases := map[string]*coordinationv1.Lease{}
	for i := range list.Items {
		leases[list.Items[i].Name] = &list.Items[i]
	}
	return leases
}

func TestReplicasThatStopTogetherLeaveNothingHeld(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 16)
			slow := jittered(rand.New(rand.NewPCG(seed, 3)), 2*time.Second)
			for i := range 3 {
				w.start(nameOf(i), func(r *replica) { r.returnAfter = slow })
			}
			w.advance(30 * time.Second)
			if gate := *w.leases()["example"].Spec.HolderIdentity; gate != "16 shards by uid" {
				t.Errorf("the gate is held by %q", gate)
			}
			for _, r := range w.replicas {
				r.stop()
			}
			for _, r := range w.replicas {
				<-r.ended
			}
			for name, lease := range w.leases() {
				if *lease.Spec.HolderIdentity != "" {
					t.Errorf("%s is held by %q", name, *lease.Spec.HolderIdentity)
				}
				if lease.Labels["kopf.dev/ring"] != "example" {
					t.Errorf("%s has the labels %v", name, lease.Labels)
				}
			}
			if n := len(w.leases()); n != 17 {
				t.Errorf("%d Leases are left", n)
			}
		})
	}
}

// elect runs the replica "leader" with leader election. It returns what stops it.
func (w *world) elect() (stop func()) {
	ctx, cancel := context.WithCancel(klog.NewContext(w.t.Context(), logr.Discard()))
	ended := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "example"}, Client: w.client().CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "leader"},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { w.leads.Store(true); w.check() },
			OnStoppedLeading: func() { w.leads.Store(false) },
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(ended)
		elector.Run(ctx)
	}()
	return func() {
		w.leads.Store(false) // a leader stops working before it releases its Lease
		cancel()
		<-ended
	}
}

// In a rolling update, old replicas elect a leader, and new ones use shards, or the other way round.
func TestLeaderAndShardsExcludeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 16)
		stop := w.elect()
		w.advance(10 * time.Second)
		a := w.start("a")
		b := w.start("b")
		w.advance(5 * time.Minute)
		if !w.leads.Load() || a.held().Len()+b.held().Len() > 0 || len(w.leases()) != 1 {
			t.Errorf("it leads: %t; a handles %s, b handles %s; %d Leases", w.leads.Load(), a.held(), b.held(), len(w.leases()))
		}
		text := "This replica waits until the replica leader, which uses leader election, has stopped."
		if n := a.count(text); n != 1 {
			t.Errorf("the log says %d times why it waits: %q", n, a.logs)
		}
		state := a.ring.State()
		isFree := slices.ContainsFunc(state.Shards, func(one ring.ShardState) bool { return !one.Free.IsZero() })
		if state.Joined || state.Gate != "leader" || isFree { // a leader handles all objects
			t.Errorf("got %+v", state)
		}
		stop()
		w.advance(5 * time.Second)
		w.expectSettled(a, b)

		stop = w.elect()
		w.advance(5 * time.Minute)
		if w.leads.Load() {
			t.Error("a leader leads while shards are used")
		}
		w.expectSettled(a, b)
		a.stop()
		w.advance(5 * time.Minute)
		if w.leads.Load() {
			t.Error("a leader leads while shards are used by the last replica with shards")
		}
		b.stop()
		<-b.ended
		w.advance(5 * time.Second)
		if !w.leads.Load() {
			t.Error("no leader leads")
		}
		stop()
		w.end()
	})
}

// Dead replicas exclude those of the other kind as long as their Leases last.
func TestDeadReplicasGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 16)
		a := w.start("a")
		w.advance(10 * time.Second)
		stop := w.elect()
		w.advance(10 * time.Second)
		a.kill()
		w.advance(leaseDuration - renewDeadline/2)
		if w.leads.Load() {
			t.Error("a leader leads too early")
		}
		w.advance(15 * time.Second)
		if !w.leads.Load() {
			t.Error("no leader leads")
		}
		stop()
		w.end()
	})
}

// A replica that starts when all others were killed cannot know that, and says for what it waits. One that joins others which
// live says nothing of the kind.
func TestReplicaSaysForWhichShardsItWaits(t *testing.T) {
	const waits = "This replica waits for the shards "
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 16)
		a := w.start("a")
		w.advance(10 * time.Second)
		b := w.start("b")
		w.advance(20 * time.Second)
		a.kill()
		b.kill()
		c := w.start("c")
		w.advance(leaseDuration / 2)
		if c.count(waits) != 1 || c.held().Len() > 0 {
			t.Errorf("%d lines, and the shards %s", c.count(waits), c.held())
		}
		w.advance(leaseDuration)
		if c.count(waits) != 1 || c.held().Len() != 16 {
			t.Errorf("%d lines, and the shards %s", c.count(waits), c.held())
		}
		if quiet := a.count("waits for") + b.count("waits for"); quiet > 0 {
			t.Errorf("%d lines of replicas that need not wait long", quiet)
		}
		w.end()
	})
}

// Another client takes the gate, as a leader could if this replica was not heard of for long.
func TestReplicaThatLosesTheGateLosesAllShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 16)
		a := w.start("a", func(r *replica) {
			r.returnAfter = func(int, error) time.Duration { return time.Second }
		})
		w.advance(10 * time.Second)
		gate := w.leases()["example"]
		gate.Spec.HolderIdentity = ptr.To("leader")
		w.update(gate)
		time.Sleep(time.Millisecond)
		if a.held().Len() > 0 || !errors.Is(a.holdOf(3).cause, ring.ErrLost) {
			t.Errorf("a handles %s, because of %v", a.held(), a.holdOf(3).cause)
		}
		w.advance(leaseDuration - time.Second)
		if a.held().Len() > 0 {
			t.Errorf("a handles %s", a.held())
		}
		w.advance(5 * time.Second)
		w.expectSettled(a)
		if a.count("has lost the shards 0-15") != 1 || a.count("This replica waits until the replica leader") != 1 {
			t.Errorf("the log says %q", a.logs)
		}
		w.end()
	})
}

// A replica that can renew everything but the gate must not work when a leader can take the gate.
func TestReplicaThatCannotRenewTheGateLosesAllShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 16)
		var refused atomic.Bool
		a := w.start("a", func(r *replica) {
			r.send = func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
				if refused.Load() && request.Method == http.MethodPut && strings.HasSuffix(request.URL.Path, "/leases/example") {
					return nil, errCut
				}
				return next.RoundTrip(request)
			}
		})
		w.advance(10 * time.Second)
		stop := w.elect()
		refused.Store(true)
		w.advance(renewDeadline + time.Second)
		if a.held().Len() > 0 {
			t.Errorf("a handles %s", a.held())
		}
		w.advance(leaseDuration)
		if !w.leads.Load() {
			t.Error("no leader leads")
		}
		stop()
		w.end()
	})
}

// A shard whose Lease cannot be renewed is lost RenewDeadline after the last renewal, and the others are not.
func TestShardWhoseLeaseCannotBeRenewedIsLostInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		var refused atomic.Bool
		a := w.start("a", func(r *replica) {
			r.send = func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
				if refused.Load() && strings.HasSuffix(request.URL.Path, "/leases/example-shard-2") {
					return nil, errCut
				}
				return next.RoundTrip(request)
			}
		})
		w.advance(10 * time.Second)
		refused.Store(true)
		time.Sleep(renewDeadline + time.Millisecond)
		if held := a.held(); !held.Equal(shards.SetOf(0, 1, 3)) {
			t.Errorf("a handles %s", held)
		}
		w.advance(time.Minute)
		refused.Store(false)
		w.advance(5 * time.Second)
		w.expectSettled(a)
		if n := a.count("This replica has lost the shard 2,"); n != 1 {
			t.Errorf("the log says %d times that it is lost: %q", n, a.logs)
		}
		w.end()
	})
}

// The last replica releases the gate, unless another one has joined just after it has seen that it is the last one.
func TestReplicaThatJoinsAtTheLastMomentKeepsTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 16)
		var stopped atomic.Bool
		var b *replica
		a := w.start("a", func(r *replica) {
			r.send = func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
				response, err := next.RoundTrip(request)
				query := request.URL.Query()
				if stopped.Load() && b == nil && request.Method == http.MethodGet && query.Has("labelSelector") && !query.Has("watch") {
					b = w.start("b")
					time.Sleep(3 * time.Second)
				}
				return response, err
			}
		})
		w.advance(10 * time.Second)
		stopped.Store(true)
		a.stop()
		<-a.ended
		w.advance(10 * time.Second)
		w.expectSettled(b)
		if b.count("lost") > 0 || w.leases()["example"].Spec.LeaseTransitions != nil {
			t.Errorf("b has lost the gate: %q", b.logs)
		}
		w.end()
	})
}

func (w *world) update(lease *coordinationv1.Lease) {
	if _, err := w.client().CoordinationV1().Leases("default").Update(w.t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		w.t.Error(err)
	}
}

func (w *world) delete(name string) {
	if err := w.client().CoordinationV1().Leases("default").Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Error(err)
	}
}

// A shard is lost as soon as the watch shows that another replica has it, or has had it.
func TestShardThatAnotherReplicaHasIsLostAtOnce(t *testing.T) {
	tests := map[string]func(*world, *coordinationv1.Lease){
		"held":     func(w *world, lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = ptr.To("b"); w.update(lease) },
		"released": func(w *world, lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = nil; w.update(lease) },
		"taken over and back": func(w *world, lease *coordinationv1.Lease) {
			*lease.Spec.LeaseTransitions += 2
			w.update(lease)
		},
		"deleted": func(w *world, lease *coordinationv1.Lease) { w.delete(lease.Name) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 4)
				a := w.start("a", func(r *replica) {
					r.returnAfter = func(int, error) time.Duration { return 10 * time.Millisecond }
				})
				w.advance(10 * time.Second)
				before := a.holdOf(2)
				change(w, w.leases()["example-shard-2"])
				time.Sleep(time.Millisecond)
				if h := a.holdOf(2); !errors.Is(h.cause, ring.ErrLost) || h.lease.Valid() {
					t.Errorf("got %+v", h)
				}
				select {
				case <-before.lease.Lost():
				default:
					t.Error("the lease does not say that it is lost")
				}
				if held := a.held(); !held.Equal(shards.SetOf(0, 1, 3)) {
					t.Errorf("a handles %s", held)
				}
				w.advance(leaseDuration + time.Second)
				w.expectSettled(a)
				w.end()
			})
		})
	}
}

// People may delete what they do not know.
func TestDeletedLeasesComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		a := w.start("a")
		b := w.start("b")
		w.advance(20 * time.Second)
		for name := range w.leases() {
			w.delete(name)
		}
		w.advance(10 * time.Second)
		w.expectSettled(a, b)
		if n := len(w.leases()); n != 7 {
			t.Errorf("there are %d Leases", n)
		}
		w.end()
	})
}

// The holder of a Lease that is deleted handles the shard until it notices, so the others wait as long as the Lease said.
func TestDeletedLeasesAreNotTakenFromTheirHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		a := w.start("a")
		b := w.start("b")
		w.advance(20 * time.Second)
		a.freeze()
		for name := range w.leases() {
			w.delete(name)
		}
		w.advance(5 * time.Second)
		a.thaw()
		w.advance(10 * time.Second)
		w.expectSettled(a, b)
		a.kill()
		for name := range w.leases() {
			w.delete(name)
		}
		w.advance(leaseDuration + 5*time.Second)
		w.expectSettled(b)
		w.end()
	})
}

func TestAnotherDivisionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 16)
		a := w.start("a")
		w.advance(10 * time.Second)
		b := w.start("b", func(r *replica) { r.division = shards.Division{Number: 32} })
		w.advance(10 * time.Second)
		<-b.ended
		want := `this replica divides the objects into 32 shards by uid, but other replicas of "example" run with 16 shards by uid: stop all replicas, then start them with the new number (settings.Replicas.Shards); no rolling update can change it`
		if b.err == nil || b.err.Error() != want {
			t.Errorf("got %v", b.err)
		}
		w.expectSettled(a)
		a.stop()
		<-a.ended
		c := w.start("c", func(r *replica) { r.division = shards.Division{Number: 8} })
		w.advance(5 * time.Second)
		if held := c.held().String(); held != "0-7" {
			t.Errorf("got %s", held)
		}
		w.end()
	})
}

// Replicas that were killed do not prevent another number of shards: nothing renews the gate.
func TestDivisionOfDeadReplicasExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 16)
		w.start("a")
		w.advance(10 * time.Second)
		w.replicas[0].kill()
		b := w.start("b", func(r *replica) { r.division = shards.Division{Number: 8} })
		w.advance(leaseDuration + 5*time.Second)
		if held := b.held().String(); held != "0-7" {
			t.Errorf("got %s", held)
		}
		w.advance(time.Minute)
		if leases := w.leases(); leases["example-shard-8"] != nil || len(leases) != 1+1+8 {
			t.Errorf("there are %d Leases", len(leases))
		}
		w.end()
	})
}

func TestUnavailableAPIServerIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 16)
		slow := func(r *replica) {
			r.returnAfter = func(int, error) time.Duration { return 4 * time.Second }
		}
		a := w.start("a", slow)
		b := w.start("b", slow)
		c := w.start("c", slow)
		w.advance(30 * time.Second)
		w.setDown(true)
		w.advance(renewDeadline)
		for _, r := range w.replicas {
			if r.held().Len() > 0 && r.holdOf(r.held().Sorted()[0]).cause == nil {
				t.Errorf("%s still handles %s", r.name, r.held())
			}
		}
		w.advance(5 * time.Second)
		for _, r := range w.replicas {
			for shard := range w.division.Number {
				if r.holdOf(shard) != nil {
					t.Errorf("%s still handles shard %d", r.name, shard)
				}
			}
			if n := r.count("error"); n > 4 {
				t.Errorf("the log has %d errors: %q", n, r.logs)
			}
		}
		w.advance(45 * time.Second)
		w.setDown(false)
		w.advance(leaseDuration + 5*time.Second)
		w.expectSettled(a, b, c)
		w.end()
	})
}

// A stop while the API server cannot be reached takes a few seconds.
func TestReplicaStopsWithoutTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 16)
		a := w.start("a")
		w.advance(30 * time.Second)
		w.setDown(true)
		time.Sleep(time.Second)
		a.stop()
		began := time.Now()
		<-a.ended
		if d := time.Since(began); d > renewDeadline {
			t.Errorf("the stop took %s", d)
		}
		w.end()
	})
}

// A watch that ends, or that the server forgets the versions of, costs no replica its shards.
func TestLostWatchesAreHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 16)
		a := w.start("a")
		b := w.start("b")
		w.advance(30 * time.Second)
		since := time.Now()
		for range 20 {
			w.server.Compact()
			w.server.EndWatches()
			w.advance(3 * time.Second)
		}
		w.expectSettled(a, b)
		for _, r := range w.replicas {
			for _, shard := range r.held().Sorted() {
				if r.holdOf(shard).since.After(since) {
					t.Errorf("%s has lost shard %d", r.name, shard)
				}
			}
		}
		w.end()
	})
}

func TestRenewalsAreFew(t *testing.T) {
	const observed = 5 * time.Minute
	for number, want := range map[int]float64{16: 4.3, 64: 14.1} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, number)
				for i := range 3 {
					w.start(nameOf(i))
				}
				w.advance(time.Minute)
				count := func() (sum uint64) {
					for _, r := range w.replicas {
						sum += r.ring.State().Writes
					}
					return sum
				}
				before := count()
				time.Sleep(observed)
				perSecond := float64(count()-before) / observed.Seconds()
				t.Logf("%d shards: %.2f writes a second", number, perSecond)
				if perSecond < want-0.3 || perSecond > want+0.3 {
					t.Errorf("%d shards: %.2f writes a second, want %.1f as the package comment says", number, perSecond, want)
				}
				w.expectSettled(w.replicas...)
				w.end()
			})
		})
	}
}
