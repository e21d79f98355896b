package sharing

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	"github.com/kopf-go/kopf/test/testenv"
)

// tenure is the time in which a replica holds a shard.
type tenure struct {
	by string // the name of the replica
	// The request for the Lease has begun at from, and the last renewal at renewed. The Lease says that it was acquired.
	from, renewed, acquired time.Time
	// until is when the Lease was seen to have another holder, or zero.
	until time.Time
	// released is set if it had none then.
	released bool
	seen     time.Time // when it was seen first
}

// couldWork reports whether the replica could handle the objects of the shard, as the Lease says.
func (t tenure) couldWork(at time.Time) bool {
	end := t.renewed.Add(leaseDuration)
	if t.released && t.until.Before(end) {
		end = t.until
	}
	return !at.Before(t.from) && !at.After(end)
}

// leases is what a watch shows of the Leases of a ring.
type leases struct {
	mu      sync.Mutex
	names   map[string]string // of replicas, by their identity
	tenures [number][]tenure
	writes  int
	last    time.Time // the last event
	stalls  []stall
}

// stall is a time in which there was no event: with so many Leases, the machine was too busy for all of them.
type stall struct{ from, until time.Time }

// longestPause is how long there can be no event on a machine that is not too busy.
const longestPause = 500 * time.Millisecond

// stalled returns how long nothing happened between two times.
func (l *leases) stalled(from, until time.Time) (sum time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.stalls {
		begin, end := s.from, s.until
		if begin.Before(from) {
			begin = from
		}
		if end.After(until) {
			end = until
		}
		sum += max(0, end.Sub(begin))
	}
	return sum
}

// watchLeases watches the Leases in a namespace until the test ends.
func watchLeases(t *testing.T, cluster *testenv.Cluster, namespace string) *leases {
	t.Helper()
	l := &leases{names: map[string]string{}}
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoordinationV1().Leases(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	follow(t, list.ResourceVersion, client.CoordinationV1().Leases(namespace).Watch, func(what watch.EventType, object runtime.Object) {
		if lease, ok := object.(*coordinationv1.Lease); ok && what != watch.Bookmark {
			l.observe(lease, time.Now())
		}
	})
	return l
}

// follow calls a function for all events since a version, until the test ends. The API server ends watches that are slow, so they
// are continued.
func follow(t *testing.T, since string, begin cache.WatchFuncWithContext, observe func(watch.EventType, runtime.Object)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	watching, err := watchtools.NewRetryWatcherWithContext(ctx, since, &cache.ListWatch{WatchFuncWithContext: begin})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watching.ResultChan() {
			observe(event.Type, event.Object)
		}
		if ctx.Err() == nil {
			t.Error("a watch of the test has ended")
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func (l *leases) observe(lease *coordinationv1.Lease, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if !l.last.IsZero() && now.Sub(l.last) > longestPause {
		l.stalls = append(l.stalls, stall{l.last, now})
	}
	l.last = now
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if strings.HasPrefix(lease.Name, operatorName+"-replica-") && len(lease.ManagedFields) > 0 {
		l.names[holder] = lease.ManagedFields[0].Manager
		return
	}
	var shard int
	if _, err := fmt.Sscanf(lease.Name, operatorName+"-shard-%d", &shard); err != nil {
		return
	}
	all := l.tenures[shard]
	renewed := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
	var last *tenure
	if len(all) > 0 && all[len(all)-1].until.IsZero() {
		last = &all[len(all)-1]
	}
	from := ptr.Deref(lease.Spec.AcquireTime, metav1.MicroTime{}).Time
	if last != nil && last.by == holder && from.Equal(last.acquired) {
		if renewed.Sub(last.renewed) <= renewDeadline {
			last.renewed = renewed
			return
		}
		from = renewed // it has lost the shard, and has got it again
	}
	if last != nil {
		last.until = now
		last.released = holder == "" && now.Before(last.renewed.Add(leaseDuration)) // else others have released it
	}
	if holder != "" {
		acquired := ptr.Deref(lease.Spec.AcquireTime, metav1.MicroTime{}).Time
		l.tenures[shard] = append(all, tenure{by: holder, acquired: acquired, from: from, renewed: renewed, seen: now})
	}
}

// named returns the tenures of a shard with the names of the replicas.
func (l *leases) named(shard int) []tenure {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.tenures[shard])
	for i := range all {
		all[i].by = cmp.Or(l.names[all[i].by], all[i].by)
	}
	return all
}

// knows reports whether a replica has got its Lease.
func (l *leases) knows(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(l.names)), name)
}

// holders returns the names of the replicas that hold the shards now.
func (l *leases) holders() []string {
	held := make([]string, number)
	for shard := range held {
		if all := l.named(shard); len(all) > 0 && all[len(all)-1].until.IsZero() {
			held[shard] = all[len(all)-1].by
		}
	}
	return held
}

// countWrites returns the number of versions of Leases so far.
func (l *leases) countWrites() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes
}
