package ring

import (
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/internal/relist"
)

// seen is a version of a Lease, and when this process has seen it first. Without a Lease, it does not exist.
type seen struct {
	lease *coordinationv1.Lease
	at    time.Time
}

func (s seen) holder() string {
	if s.lease == nil {
		return ""
	}
	return holderOf(s.lease)
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// expires returns when the Lease expires, unless it is renewed.
func (s seen) expires() time.Time {
	if s.lease.Spec.LeaseDurationSeconds == nil {
		return s.at
	}
	return s.at.Add(time.Duration(*s.lease.Spec.LeaseDurationSeconds) * time.Second)
}

// isFree reports whether nothing holds the Lease.
func (s seen) isFree(now time.Time) bool { return s.holder() == "" || !now.Before(s.expires()) }

// view is what this process knows of the Leases, from its watch and from the answers to its requests. Ring.mu guards it.
type view struct {
	leases map[string]seen
	// deleted are the last versions of Leases that were deleted, until they would have expired: their holders may not know it yet.
	deleted map[string]seen
	began   time.Time
	history relist.History // of the watch
	listed  bool
}

func newView() view {
	return view{leases: map[string]seen{}, deleted: map[string]seen{}, began: time.Now()}
}

// claim returns the version of a Lease that says who can hold it: also of one that was deleted, but not released.
func (v *view) claim(name string) seen {
	if known, exists := v.leases[name]; exists {
		return known
	}
	return v.deleted[name]
}

// freeSince returns since when nothing holds a Lease that is free. Of one that does not exist, this process knows nothing.
func (v *view) freeSince(name string) time.Time {
	known := v.claim(name)
	switch {
	case known.holder() != "":
		return known.expires()
	case known.lease != nil:
		return known.at
	default:
		return v.began
	}
}

// observe records a version of a Lease, unless it or a newer one is known.
func (v *view) observe(lease *coordinationv1.Lease, at time.Time) (changed bool) {
	known := v.leases[lease.Name].lease
	if known != nil && (known.ResourceVersion == lease.ResourceVersion || relist.IsOlder(lease.ResourceVersion, known.ResourceVersion)) {
		return false
	}
	v.leases[lease.Name] = seen{lease, at}
	delete(v.deleted, lease.Name)
	return true
}

// miss records that a Lease does not exist.
func (v *view) miss(name string) (changed bool) {
	known, changed := v.leases[name]
	if !changed {
		return false
	}
	delete(v.leases, name)
	now := time.Now()
	maps.DeleteFunc(v.deleted, func(_ string, one seen) bool { return one.isFree(now) })
	if !known.isFree(now) {
		v.deleted[name] = known
	}
	return true
}

// forget records that a Lease did not exist in a version of the cluster, unless a newer one is known.
func (v *view) forget(name, version string) {
	if known := v.leases[name].lease; known != nil && relist.IsOlder(known.ResourceVersion, version) {
		v.miss(name)
	}
}

// observe records an answer of the API server: a version of a Lease, or nil if it does not exist. The lock must be held.
func (r *Ring) observe(name string, lease *coordinationv1.Lease, at time.Time) {
	var changed bool
	if lease == nil {
		changed = r.view.miss(name)
	} else {
		changed = r.view.observe(lease, at)
	}
	if changed {
		r.changed()
	}
}

// store is the store of the reflector.
type store struct{ *Ring }

var _ cache.ReflectorStore = store{}

// Add records a Lease of the watch.
func (s store) Add(object any) error {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("got %T instead of a Lease", object)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view.history.Advance(lease.ResourceVersion)
	s.view.observe(lease, time.Now())
	s.changed()
	return nil
}

// Update is Add.
func (s store) Update(object any) error { return s.Add(object) }

// Delete records that a Lease is gone, or has lost its label.
func (s store) Delete(object any) error {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("got %T instead of a Lease", object)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view.history.Advance(lease.ResourceVersion)
	s.view.forget(lease.Name, lease.ResourceVersion)
	s.changed()
	return nil
}

// Replace records a list. The gate can be missing in it: replicas that elect a leader give it no label.
func (s store) Replace(objects []any, version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view.history.Restart(version) { // what is known belongs to another history
		clear(s.view.leases)
	}
	listed := map[string]bool{}
	for _, object := range objects {
		lease, ok := object.(*coordinationv1.Lease)
		if !ok {
			return fmt.Errorf("got %T instead of a Lease", object)
		}
		listed[lease.Name] = true
		s.view.observe(lease, time.Now())
	}
	for name := range s.view.leases {
		if !listed[name] && name != s.names.gate {
			s.view.forget(name, version)
		}
	}
	s.view.listed = true
	s.changed()
	return nil
}

// Resync does nothing.
func (s store) Resync() error { return nil }

// clock is the time of the last renewal. The zero value has seen none. It is safe for concurrent use.
type clock struct{ last atomic.Pointer[time.Time] }

func (c *clock) set(at time.Time) { c.last.Store(&at) }

// isWithin reports whether the last renewal is not longer ago than a duration. The wall clock counts, too, if it is ahead:
// the other one can stand still while a machine sleeps.
func (c *clock) isWithin(d time.Duration) bool {
	last := c.last.Load()
	if last == nil {
		return false
	}
	now := time.Now()
	return now.Sub(*last) < d && now.Round(0).Sub(last.Round(0)) < d
}
