package ring

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/shards"
)

func TestStateShowsSinceWhenNoReplicaHoldsAShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newRing(t)
		time.Sleep(time.Second)
		r.observe("example-shard-0", leaseOf("example-shard-0", "5", "b"), time.Now())
		r.observe("example-shard-1", leaseOf("example-shard-1", "6", ""), time.Now())
		check := func(what string, want ...time.Duration) {
			t.Helper()
			for shard, one := range r.State().Shards {
				since := time.Duration(-1)
				if !one.Free.IsZero() {
					since = one.Free.Sub(began)
				}
				if since != want[shard] {
					t.Errorf("%s: shard %d is free since %s, want %s", what, shard, since, want[shard])
				}
			}
		}
		const held = -1
		check("one is held, one is released, and two do not exist", held, time.Second, 0, 0)
		time.Sleep(time.Minute)
		check("a Lease has expired", 16*time.Second, time.Second, 0, 0)
		r.observe("example-shard-0", leaseOf("example-shard-0", "7", "c"), time.Now())
		check("another replica has it", held, time.Second, 0, 0)
	})
}

func TestStateTellsLeadersFromReplicasWithShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		for i, holder := range []string{"", "web-1_2", "4 shards by uid", "8 shards by uid"} {
			r.observe("example", leaseOf("example", []string{"1", "2", "3", "4"}[i], holder), time.Now())
			leader := ""
			if holder == "web-1_2" {
				leader = holder
			}
			if s := r.State(); s.Gate != holder || s.Leader != leader {
				t.Errorf("%q: got %+v", holder, s)
			}
		}
	})
}

func TestStateShowsWhatShouldBeHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		r.assignment = assignment{[]string{"a", "b"}, []string{"a", "b", "b", "a"}}
		if s := r.State(); !s.Assigned.IsEmpty() {
			t.Errorf("it has not joined, and should hold %s", s.Assigned)
		}
		r.joined = true
		if s := r.State(); !s.Assigned.Equal(shards.SetOf(0, 3)) || s.Identity != "a" {
			t.Errorf("got %+v", s)
		}
		r.left = true
		if s := r.State(); !s.Assigned.IsEmpty() {
			t.Errorf("it leaves, and should hold %s", s.Assigned)
		}
	})
}
