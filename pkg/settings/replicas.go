package settings

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The defaults of the settings of Replicas; the durations are those of Kubernetes'
// own controllers.
const (
	DefaultLeaseName     = "kopf-operator"
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
)

// Replicas is how several processes of one operator share the work: one of them,
// the leader, handles the objects; the others watch them and stand by. They agree
// by a Lease. Operators that are different programs know of each other by Peering.
//
// An operator in the manager of another program uses the election of that manager,
// whatever is said here.
type Replicas struct {
	// LeaderElection makes the replicas elect a leader. Default: false, for an operator on
	// a developer's machine is alone, and should not wait for a lease to run out.
	LeaderElection bool
	// LeaseName is that of the Lease: one for each operator of the namespace.
	// Default: DefaultLeaseName.
	LeaseName string
	// LeaseNamespace is the namespace of the Lease. Default: that of the pod, or
	// outside of a cluster that of the kubeconfig.
	LeaseNamespace string
	// LeaseDuration is how long a replica waits after the last sign of life of the
	// leader before it takes over. Default: DefaultLeaseDuration.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader goes on without being able to renew the
	// lease. It must be shorter than LeaseDuration, for between them the leader has
	// to stop its handlers. Default: DefaultRenewDeadline.
	RenewDeadline time.Duration
	// RetryPeriod is the pause between two tries to get or to renew the lease: a
	// write of the leader, and a read of the others. Default: DefaultRetryPeriod.
	RetryPeriod time.Duration
}

func (r *Replicas) fill() {
	fill(&r.LeaseName, DefaultLeaseName)
	fill(&r.LeaseDuration, DefaultLeaseDuration)
	fill(&r.RenewDeadline, DefaultRenewDeadline)
	fill(&r.RetryPeriod, DefaultRetryPeriod)
}

// jitter is by how much client-go may stretch a RetryPeriod.
const jitter = 1.2

func (r Replicas) validate() error {
	var problems []error
	if faults := validation.IsDNS1123Subdomain(r.LeaseName); r.LeaseName != "" && len(faults) > 0 {
		problems = append(problems, fmt.Errorf("settings.Replicas.LeaseName %q is no name of an object: %s", r.LeaseName, faults[0]))
	}
	if faults := validation.IsDNS1123Label(r.LeaseNamespace); r.LeaseNamespace != "" && len(faults) > 0 {
		problems = append(problems, fmt.Errorf("settings.Replicas.LeaseNamespace %q is no name of a namespace: %s", r.LeaseNamespace, faults[0]))
	}
	return errors.Join(append(problems, r.validateTimes())...)
}

func (r Replicas) validateTimes() error {
	if err := errors.Join(
		notNegative("Replicas.LeaseDuration", r.LeaseDuration),
		notNegative("Replicas.RenewDeadline", r.RenewDeadline),
		notNegative("Replicas.RetryPeriod", r.RetryPeriod),
	); err != nil {
		return err
	}
	r.fill()
	switch {
	case r.LeaseDuration <= r.RenewDeadline:
		return fmt.Errorf("settings.Replicas.RenewDeadline must be shorter than LeaseDuration: %v and %v", r.RenewDeadline, r.LeaseDuration)
	case float64(r.RenewDeadline) <= jitter*float64(r.RetryPeriod):
		return fmt.Errorf("settings.Replicas.RetryPeriod must be shorter than RenewDeadline by a fifth: %v and %v", r.RetryPeriod, r.RenewDeadline)
	}
	return nil
}
