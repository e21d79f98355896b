package ring

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
)

// phase is how far a tenure has come.
type phase int

const (
	acquiring phase = iota // the elector tries to get the Lease
	holding                // Config.Hold runs
	ended                  // Config.Hold has returned, or will not be called; the Lease can be released
)

// tenure is an attempt of this replica to hold a shard, and the time in which it holds it. It makes the requests of the
// elector. There is one for a shard at most, until Config.Hold has returned.
type tenure struct {
	coordinationclient.LeaseInterface

	ring     *Ring
	shard    int
	name     string
	handling context.Context //nolint:containedctx // of Config.Hold
	stop     context.CancelFunc
	hold     sync.WaitGroup

	renewed clock
	expired atomic.Bool   // seen by Valid
	lost    chan struct{} // closed when the Lease is lost

	// Ring.mu guards what follows.
	phase       phase
	draining    time.Time // when it was asked to give up the shard, or zero
	uid         types.UID // of the Lease
	transitions int32     // of the Lease: another replica would have increased them
	interval    time.Duration
	deadline    *time.Timer
	cancelHold  context.CancelCauseFunc
}

var _ Validity = &tenure{}

// Valid reports whether the Lease is held. It leaves a margin before the end of the LeaseDuration: on a busy machine, a call that
// may begin now begins some moments later.
func (t *tenure) Valid() bool {
	limit := t.ring.config.RenewDeadline
	switch {
	case t.isLost() || t.expired.Load():
		return false
	case t.renewed.isWithin(limit) && t.ring.gateSeen.isWithin(limit):
		return true
	}
	t.expired.Store(true)
	t.ring.wake()
	return false
}

// Lost returns a channel that is closed when the Lease is lost.
func (t *tenure) Lost() <-chan struct{} { return t.lost }

func (t *tenure) isLost() bool {
	select {
	case <-t.lost:
		return true
	default:
		return false
	}
}

// newElector returns the elector of a tenure.
func (r *Ring) newElector(t *tenure) (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: t.name,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Name: t.name, Namespace: r.config.Namespace}, Client: t,
			LockConfig: resourcelock.ResourceLockConfig{Identity: r.config.Identity},
			Labels:     map[string]string{label: r.names.value},
		},
		LeaseDuration: r.duration, RenewDeadline: r.config.RenewDeadline,
		RetryPeriod:     r.pause(), // another one for each tenure, so that their requests spread
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{ // the writes say it first
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {},
		},
	})
}

// start begins a tenure. The lock must be held.
func (r *Ring) start(lasting, handling context.Context, shard int) {
	t := &tenure{
		LeaseInterface: r.client, ring: r, shard: shard, name: r.names.shards[shard],
		handling: handling, lost: make(chan struct{}), interval: r.interval(),
	}
	elector, err := r.newElector(t)
	if err != nil { // New has tried it
		return
	}
	r.tenures[shard] = t
	electing, stop := context.WithCancel(lasting)
	t.stop = stop
	r.requests.Go(func() {
		elector.Run(electing)
		stop()
		r.mu.Lock()
		if t.phase == holding {
			t.lose() // the elector has given up
		}
		r.mu.Unlock()
		t.hold.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.tenures, shard)
		r.wake()
	})
}

// The methods that follow must be called with the lock.

// abort ends an attempt.
func (t *tenure) abort() {
	if t.phase == acquiring {
		t.phase = ended // if the last request has succeeded, the elector releases the Lease
		t.stop()
	}
}

// begin calls Config.Hold for a Lease that was got by a request that began at a time.
func (t *tenure) begin(lease *coordinationv1.Lease, began time.Time) {
	r := t.ring
	t.phase = holding
	r.taken++
	t.uid = lease.UID
	t.transitions = ptr.Deref(lease.Spec.LeaseTransitions, 0)
	t.renewed.set(began)
	t.deadline = time.AfterFunc(time.Until(began.Add(r.config.RenewDeadline)), t.checkDeadline)
	ctx, cancel := context.WithCancelCause(t.handling)
	t.cancelHold = cancel
	t.hold.Go(func() {
		defer t.returned()
		r.config.Hold(ctx, t.shard, t)
	})
	r.wake()
}

// drain asks Config.Hold to give up the shard.
func (t *tenure) drain(now time.Time) {
	t.draining = now
	t.cancelHold(ErrMoved)
}

// lose cancels Config.Hold, because another replica can hold the Lease. The elector cannot renew or release it anymore.
func (t *tenure) lose() {
	if t.phase != holding || t.isLost() {
		return
	}
	close(t.lost)
	t.ring.lost++
	t.cancelHold(ErrLost)
	t.deadline.Stop()
	t.stop()
	t.ring.news.lost = t.ring.news.lost.With(t.shard)
	t.ring.wake()
}

// owns reports whether a version of the Lease belongs to this tenure. Another replica can have held it and released it.
func (t *tenure) owns(lease *coordinationv1.Lease) bool {
	return lease != nil && holderOf(lease) == t.ring.config.Identity && lease.UID == t.uid && ptr.Deref(lease.Spec.LeaseTransitions, 0) == t.transitions
}

// The methods that follow take the lock.

// checkDeadline is called when the Lease should have been renewed.
func (t *tenure) checkDeadline() {
	t.ring.mu.Lock()
	defer t.ring.mu.Unlock()
	if !t.renewed.isWithin(t.ring.config.RenewDeadline) {
		t.lose()
	}
}

// returned is called when Config.Hold has returned. The elector releases the Lease then.
func (t *tenure) returned() {
	t.ring.mu.Lock()
	defer t.ring.mu.Unlock()
	t.phase = ended
	if !t.isLost() {
		t.ring.given++
	}
	t.deadline.Stop()
	t.cancelHold(nil)
	t.stop()
	t.ring.wake()
}

// Leases returns the client of the elector.
func (t *tenure) Leases(string) coordinationclient.LeaseInterface { return t }

var (
	errLeaseLost = errors.New("another replica can hold the lease")
	errLeaseHeld = errors.New("the lease cannot be released: the shard is handled")
	errTooOld    = errors.New("the API server has shown an old version of the lease")
)

// Get reads the Lease. A Lease that this process has not seen change for long enough looks released: the elector would
// watch it for another LeaseDuration.
func (t *tenure) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	if t.isLost() {
		return nil, errLeaseLost
	}
	r := t.ring
	limited, cancel := context.WithTimeout(ctx, r.timeout())
	defer cancel()
	lease, err := t.LeaseInterface.Get(limited, name, options)
	t.reportFailure(ctx, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case apierrors.IsNotFound(err):
		now := time.Now()
		r.observe(name, nil, now)
		t.lose()
		if claim := r.view.claim(name); claim.holder() != r.config.Identity && !claim.isFree(now) {
			t.abort()
			return nil, errLeaseLost
		}
		return nil, err
	case err != nil:
		return nil, err
	}
	now := time.Now()
	r.observe(name, lease.DeepCopy(), now) // the elector changes the one that it gets
	known := r.view.leases[name]
	switch {
	case t.uid != "" && !t.owns(lease): // it had the Lease
		t.lose()
		return nil, errLeaseLost
	case t.uid != "" || known.holder() == r.config.Identity:
		return lease, nil
	case known.lease.ResourceVersion != lease.ResourceVersion:
		return nil, errTooOld
	case known.isFree(now):
		lease = lease.DeepCopy()
		lease.Spec.HolderIdentity = nil
		return lease, nil
	default:
		t.abort()
		return lease, nil
	}
}

// Create makes the Lease.
func (t *tenure) Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return t.write(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return t.LeaseInterface.Create(ctx, lease, options)
	})
}

// Update gets, renews, or releases the Lease. The elector renews it more often than necessary.
func (t *tenure) Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	renewing, err := t.admit(lease)
	if err != nil || !renewing {
		return lease, err
	}
	return t.write(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return t.LeaseInterface.Update(ctx, lease, options)
	})
}

// admit reports whether an update must be sent, or why it must not.
func (t *tenure) admit(lease *coordinationv1.Lease) (sent bool, err error) {
	t.ring.mu.Lock()
	defer t.ring.mu.Unlock()
	switch {
	case t.isLost():
		return false, errLeaseLost
	case t.phase != holding:
		return true, nil
	case holderOf(lease) == "":
		return false, errLeaseHeld
	case !t.Valid():
		t.lose()
		return false, errLeaseLost
	default:
		return !t.renewed.isWithin(t.interval), nil
	}
}

// reportFailure reports the error of a request, unless another replica was faster, or the request was canceled.
func (t *tenure) reportFailure(ctx context.Context, err error) {
	if !isRaced(err) && ctx.Err() == nil {
		t.ring.report("shards", "The leases of shards cannot be read or written. Shards whose leases are not renewed in time are lost.", err)
	}
}

// write makes a write, and acts on its success.
func (t *tenure) write(ctx context.Context, request func(context.Context) (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	r := t.ring
	limited, cancel := context.WithTimeout(ctx, r.timeout())
	defer cancel()
	began := time.Now()
	lease, err := request(limited)
	t.reportFailure(ctx, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	if isRaced(err) {
		t.abort() // the next attempt need not wait for a RetryPeriod, if the shard can still be had
	}
	if err != nil {
		return lease, err
	}
	r.observe(t.name, lease.DeepCopy(), began)
	switch {
	case t.phase == acquiring:
		t.begin(lease, began)
	case t.phase == holding && t.Valid():
		t.renewed.set(began)
		t.interval = r.interval()
		t.deadline.Reset(time.Until(began.Add(r.config.RenewDeadline)))
	case t.phase == holding:
		t.lose()
	}
	return lease, nil
}
