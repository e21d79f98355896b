package ring

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// A replica joins, another one stops, one is killed, and one is frozen for longer than the Leases last, in any order.
func TestOneReplicaHandlesEachShard(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				w := newWorld(t, 16)
				slow := func(r *replica) { r.returnAfter = jittered(rand.New(rand.NewPCG(seed, 2)), 4*time.Second) }
				var alive []*replica
				join := func() { alive = append(alive, w.start(nameOf(len(w.replicas)), slow)) }
				for range 3 {
					join()
					w.advance(time.Duration(random.Int64N(int64(10 * time.Second))))
				}
				pick := func() *replica {
					i := random.IntN(len(alive))
					r := alive[i]
					alive = append(alive[:i:i], alive[i+1:]...)
					return r
				}
				var stopped *replica
				var thaw func()
				acts := []func(){
					join,
					join,
					func() { stopped = pick(); stopped.stop() },
					func() { pick().kill() },
					func() {
						r := pick()
						r.freeze()
						at := time.Now().Add(time.Duration(random.Int64N(int64(30 * time.Second))))
						thaw = func() {
							if thaw != nil && !time.Now().Before(at) {
								r.thaw()
								alive = append(alive, r)
								thaw = nil
							}
						}
					},
				}
				// In half of the seeds, one replica at a time has failed.
				apart := seed%2 == 0
				longest := leaseDuration + 5*time.Second
				if !apart {
					longest *= 2
				}
				for _, i := range random.Perm(len(acts)) {
					acts[i]()
					pause := random.Int64N(20)
					if apart {
						pause += int64(longest / time.Second)
					}
					for ; pause > 0; pause-- {
						w.advance(time.Second)
						if thaw != nil {
							thaw()
						}
					}
				}
				for thaw != nil {
					w.advance(time.Second)
					thaw()
				}
				w.advance(time.Minute)
				w.expectSettled(alive...)
				t.Log("the longest time without a holder is", w.longest)
				if w.longest > longest {
					t.Errorf("a shard was not handled for %s, want at most %s", w.longest, longest)
				}
				if stopped.held().Len() > 0 || stopped.err != nil {
					t.Errorf("a replica that has stopped handles %s: %v", stopped.held(), stopped.err)
				}
				w.end()
			})
		})
	}
}
