package ring

import (
	"context"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// read reads a Lease into the view.
func (r *Ring) read(ctx context.Context, name string) (seen, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout())
	defer cancel()
	lease, err := r.client.Get(ctx, name, metav1.GetOptions{})
	r.mu.Lock()
	defer r.mu.Unlock()
	if apierrors.IsNotFound(err) {
		lease = nil
		err = nil
	}
	if err != nil {
		return seen{}, err
	}
	r.observe(name, lease, time.Now())
	return r.view.leases[name], nil
}

// put makes or renews a Lease with a holder, or releases it with none. It writes on the version that was seen, and
// fails if there is another one.
func (r *Ring) put(ctx context.Context, name string, known seen, holder string) error {
	began := time.Now()
	now := metav1.NewMicroTime(began)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.config.Namespace}}
	if known.lease != nil {
		lease = known.lease.DeepCopy()
	}
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	lease.Labels[label] = r.names.value
	if known.holder() != holder {
		if holder != "" && known.lease != nil {
			lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
		}
		lease.Spec.HolderIdentity = &holder
		lease.Spec.AcquireTime = &now
	}
	lease.Spec.RenewTime = &now
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(r.duration / time.Second))

	ctx, cancel := context.WithTimeout(ctx, r.timeout())
	defer cancel()
	write := func() (*coordinationv1.Lease, error) { return r.client.Update(ctx, lease, metav1.UpdateOptions{}) }
	if known.lease == nil {
		write = func() (*coordinationv1.Lease, error) { return r.client.Create(ctx, lease, metav1.CreateOptions{}) }
	}
	written, err := write()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	if err == nil {
		r.observe(name, written, began)
	}
	return err
}

// remove deletes a Lease, but no other one than the given one, if there is one.
func (r *Ring) remove(ctx context.Context, name string, only *metav1.Preconditions) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout())
	defer cancel()
	err := r.client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: only})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	if err == nil || apierrors.IsNotFound(err) {
		r.observe(name, nil, time.Now())
		return nil
	}
	return err
}

// interval returns after how long a Lease is renewed.
func (r *Ring) interval() time.Duration {
	return time.Duration((0.3 + 0.2*rand.Float64()) * float64(r.config.RenewDeadline))
}

// pause returns the pause after a failure.
func (r *Ring) pause() time.Duration {
	return time.Duration((0.8 + 0.2*rand.Float64()) * float64(r.config.RetryPeriod))
}

// isRaced reports whether a write has failed because of another write.
func isRaced(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}
