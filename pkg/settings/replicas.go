package settings

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The defaults of the settings of Replicas. The durations are those of the controllers of
// Kubernetes.
const (
	DefaultLeaseName     = "kopf-operator"
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
)

// ShardKey is what decides which shard an object is in.
type ShardKey string

// The keys of shards.
const (
	ShardByUID       ShardKey = "uid"
	ShardByNamespace ShardKey = "namespace"
)

// MaxShards limits the number of shards: each has a Lease, which is renewed all the time.
const MaxShards = 256

// Replicas configures several processes of one operator. With LeaderElection, one of them, the leader, handles
// the objects, and the others watch them and stand by. With Shards, all of them handle objects. Leases decide which
// one handles what. For operators that are different programs, see Peering.
//
// An operator that is added to a manager uses the leader election of that manager instead. It can have shards in a manager
// without an election.
type Replicas struct {
	// Shards is the number of shards that the objects are divided into. Each replica handles those of some shards. Make it a few
	// times the largest number of replicas that you can imagine: 16 suits up to 5, and costs about 4 writes a second. All
	// replicas must have the same number: stop all of them to change it. At most MaxShards. Default: 0, no shards.
	Shards int
	// ShardKey is what decides which shard an object is in: its uid, or its namespace. By uid, an API server with sharded watches
	// sends each replica only its own objects. By namespace, the objects of a namespace are handled by the
	// same replica. All replicas must have the same key. Default: ShardByUID.
	ShardKey ShardKey

	// LeaderElection makes the replicas elect a leader. Default: false, so that an operator
	// on a developer's machine does not wait until a lease expires.
	LeaderElection bool
	// LeaseName is the name of the Lease, and the beginning of the names of those of shards. Each operator in a namespace needs another one: two
	// with the same lease exclude each other. Default: Settings.Name, if it is a valid name of
	// an object; else DefaultLeaseName, which the log points out.
	LeaseName string
	// LeaseNamespace is the namespace of the Lease. Default: that of the pod, or, outside of
	// a cluster, that of the kubeconfig.
	LeaseNamespace string
	// LeaseDuration is how long a replica waits after the leader has last renewed the lease
	// before it takes over. Default: DefaultLeaseDuration.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader continues if it cannot renew the lease. It must
	// be shorter than LeaseDuration: in the time between them, the leader stops its
	// handlers. Default: DefaultRenewDeadline.
	RenewDeadline time.Duration
	// RetryPeriod is the pause between two attempts to get or to renew the lease. Each
	// attempt is a write by the leader, and a read by the others. Default:
	// DefaultRetryPeriod.
	RetryPeriod time.Duration
}

func (r *Replicas) fill() {
	if r.Shards > 0 {
		fill(&r.ShardKey, ShardByUID)
	}
	fill(&r.LeaseName, DefaultLeaseName)
	fill(&r.LeaseDuration, DefaultLeaseDuration)
	fill(&r.RenewDeadline, DefaultRenewDeadline)
	fill(&r.RetryPeriod, DefaultRetryPeriod)
}

// CheckShardName returns an error if there are shards, but the lease has the default name. Another operator in the namespace
// with that name would hold some of the shards, and both would miss objects. Startup handlers can still set a name.
func (s Settings) CheckShardName() error {
	if s.Replicas.Shards == 0 || s.WithDefaults().Replicas.LeaseName != DefaultLeaseName {
		return nil
	}
	return fmt.Errorf("an operator with shards needs a name, so that another one in its namespace does not take some of them: set settings.Name, or settings.Replicas.LeaseName (--lease-name) to another name than %s", DefaultLeaseName)
}

// jitter is the factor by which client-go can stretch a RetryPeriod.
const jitter = 1.2

func (r Replicas) validate() error {
	var problems []error
	if faults := validation.IsDNS1123Subdomain(r.LeaseName); r.LeaseName != "" && len(faults) > 0 {
		problems = append(problems, fmt.Errorf("settings.Replicas.LeaseName %q is not a valid name of an object: %s", r.LeaseName, faults[0]))
	}
	if faults := validation.IsDNS1123Label(r.LeaseNamespace); r.LeaseNamespace != "" && len(faults) > 0 {
		problems = append(problems, fmt.Errorf("settings.Replicas.LeaseNamespace %q is not a valid name of a namespace: %s", r.LeaseNamespace, faults[0]))
	}
	if err := errors.Join(
		notNegative("Replicas.LeaseDuration", r.LeaseDuration),
		notNegative("Replicas.RenewDeadline", r.RenewDeadline),
		notNegative("Replicas.RetryPeriod", r.RetryPeriod),
	); err != nil {
		return errors.Join(append(problems, err)...)
	}
	switch {
	case r.Shards < 0 || r.Shards > MaxShards:
		problems = append(problems, fmt.Errorf("settings.Replicas.Shards must be between 0 and %d: %d", MaxShards, r.Shards))
	case r.Shards > 0 && r.LeaderElection:
		problems = append(problems, errors.New("settings.Replicas has both Shards and LeaderElection: with shards, all replicas handle objects; without them, only the leader does. Set one of them"))
	case r.Shards == 0 && r.ShardKey != "":
		problems = append(problems, fmt.Errorf("settings.Replicas.ShardKey is %q, but there are no shards: set Shards", r.ShardKey))
	case r.ShardKey != "" && r.ShardKey != ShardByUID && r.ShardKey != ShardByNamespace:
		problems = append(problems, fmt.Errorf("settings.Replicas.ShardKey must be %q or %q: %q", ShardByUID, ShardByNamespace, r.ShardKey))
	}
	r.fill()
	switch {
	case r.LeaseDuration <= r.RenewDeadline:
		problems = append(problems, fmt.Errorf("settings.Replicas.RenewDeadline must be shorter than LeaseDuration: %v and %v", r.RenewDeadline, r.LeaseDuration))
	case float64(r.RenewDeadline) <= jitter*float64(r.RetryPeriod):
		problems = append(problems, fmt.Errorf("settings.Replicas.RetryPeriod must be shorter than RenewDeadline by a fifth: %v and %v", r.RetryPeriod, r.RenewDeadline))
	}
	return errors.Join(problems...)
}
