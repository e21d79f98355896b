package watch

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/shards"
)

// shown is which shards the streams show. If there are more, they list their objects again, because only a list that
// begins later has everything that the last holder of a shard has written. If there are fewer, they watch fewer objects.
//
//	Show → relist → stream.listAgain → kube.Share.Wanted
//	Hide → relist → stream.renew     → kube.Share.Wanted, Left → snapshots.leave
//	              → Consumer.LeaveChildren
//
// Shards that a replica gets or loses together are listed together.
type shown struct {
	division shards.Division

	// ignored says once that the API server does not know the selector.
	ignored func()

	mu     sync.Mutex
	wanted shards.Set
	next   *relisting // it has not begun yet; nil: none will
}

// relisting is one list in all streams.
type relisting struct {
	done chan struct{}
	// widens is set if there are more shards than before. Otherwise, handled objects need no list.
	widens bool
}

const (
	// gatherGained is how long a replica waits for other shards before it lists their objects.
	gatherGained = 100 * time.Millisecond
	// gatherLost is how long it keeps the objects of shards that it has lost.
	gatherLost = 2 * time.Second
)

// share returns which objects a new stream shows: of a resource, or of children, which can belong to objects in
// any shard.
func (s *shown) share(r *Resource) *kube.Share {
	if s.division.IsZero() {
		return nil
	}
	share := &kube.Share{Division: s.division, Whole: true, Wanted: s.set, Ignored: s.ignored}
	if r != nil {
		share.Namespaced = r.Namespaced
		share.Whole = r.IsWhole
	}
	return share
}

func (s *shown) set() shards.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted
}

// Shows reports whether an object is in a shard that the next list shows.
func (w *Watcher) Shows(namespace string, uid types.UID) bool {
	return w.shown.set().Has(w.Division.Of(namespace, uid))
}

// Show makes the streams show another shard, and waits until they have listed its objects. It returns false if the context
// is done before.
func (w *Watcher) Show(ctx context.Context, shard int) bool {
	w.shown.mu.Lock()
	w.shown.wanted = w.shown.wanted.With(shard)
	w.shown.mu.Unlock()
	select {
	case <-w.relist(gatherGained, true):
		return true
	case <-ctx.Done():
		return false
	}
}

// Hide lets the streams forget the objects of a shard, soon. It does not wait.
func (w *Watcher) Hide(shard int) {
	w.shown.mu.Lock()
	w.shown.wanted = w.shown.wanted.Without(shard)
	w.shown.mu.Unlock()
	w.relist(gatherLost, false)
}

// relist makes all streams show the wanted shards after a delay, and returns a channel that is closed then.
func (w *Watcher) relist(delay time.Duration, widens bool) <-chan struct{} {
	w.shown.mu.Lock()
	defer w.shown.mu.Unlock()
	if known := w.shown.next; known != nil && (known.widens || !widens) {
		return known.done
	}
	one := &relisting{done: make(chan struct{}), widens: widens}
	w.shown.next = one
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return one.done
	}
	ctx := w.lifetime
	w.running.Go(func() {
		if !sleep.For(ctx, delay) {
			return
		}
		w.shown.mu.Lock()
		if w.shown.next == one {
			w.shown.next = nil
		}
		w.shown.mu.Unlock()
		if !one.widens {
			w.renew()
			w.Consumer.LeaveChildren()
			close(one.done)
			return
		}
		late := time.AfterFunc(listedSoon, func() {
			w.Logger.Info("The objects of more shards are not handled yet: the operator waits for their lists.")
		})
		defer late.Stop()
		for _, wait := range w.listAgain() {
			if !wait(ctx) {
				return
			}
		}
		close(one.done)
	})
	return one.done
}

// listAgain makes the streams list their objects again, and returns functions that wait for that.
func (w *Watcher) listAgain() (waits []func(context.Context) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.active {
		for _, s := range r.streams.all() {
			waits = append(waits, s.listAgain())
		}
	}
	for _, s := range w.children {
		waits = append(waits, s.listAgain())
	}
	return waits
}

// renew makes the streams watch fewer objects.
func (w *Watcher) renew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.active {
		for _, s := range r.streams.all() {
			if !r.IsWhole {
				s.renew()
			}
		}
	}
}
