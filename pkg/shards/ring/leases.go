package ring

import (
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/shards"
)

// Labels returns the labels of the Leases of a ring, by its name. The gate lacks them until the ring has used it.
func Labels(name string) labels.Set {
	return labels.Set{label: shorten(name, validation.LabelValueMaxLength)}
}

// shardPrefix and memberPrefix return the beginnings of the names of the Leases of shards and of replicas, as newNames makes them.
func shardPrefix(name string) string  { return shorten(name, maxName) + "-shard-" }
func memberPrefix(name string) string { return shorten(name, maxName) + "-replica-" }

// ShardLease returns the name of the Lease of a shard.
func ShardLease(name string, shard int) string { return shardPrefix(name) + strconv.Itoa(shard) }

// Leases are the Leases of a ring, as a program sees them that is no part of it.
type Leases struct {
	// Gate has the name of the ring. It is zero if it does not exist.
	Gate Lease
	// Division is what the gate names, or zero if its holder is no division.
	Division shards.Division
	// Members are those of the replicas, by their holders.
	Members []Lease
	// Shards are those of shards, by their numbers.
	Shards map[int]Lease
}

// Lease is what a Lease says.
type Lease struct {
	Name string
	// Holder is empty if the Lease was released.
	Holder string
	// Since is when the holder got it, Renewed when it was renewed last, and Until when it expires unless it is renewed: by
	// the clocks of the replicas.
	Since, Renewed, Until time.Time
}

// IsHeld reports whether the Lease has a holder, and has not expired.
func (l Lease) IsHeld(now time.Time) bool { return l.Holder != "" && now.Before(l.Until) }

// Sort finds out what the Leases of a ring are for. The others of a list are left out. Without a duration, a Lease has
// the default one.
func Sort(name string, all []coordinationv1.Lease, duration time.Duration) Leases {
	sorted := Leases{Shards: map[int]Lease{}}
	selector := Labels(name).AsSelector()
	for i := range all {
		lease := readLease(&all[i], duration)
		number, isShard := strings.CutPrefix(lease.Name, shardPrefix(name))
		shard, err := strconv.Atoi(number)
		switch {
		case lease.Name == name:
			sorted.Gate = lease
			sorted.Division, _ = shards.Parse(lease.Holder)
		case !selector.Matches(labels.Set(all[i].Labels)):
		case isShard && err == nil:
			sorted.Shards[shard] = lease
		case strings.HasPrefix(lease.Name, memberPrefix(name)):
			sorted.Members = append(sorted.Members, lease)
		}
	}
	slices.SortFunc(sorted.Members, func(a, b Lease) int { return strings.Compare(a.Holder, b.Holder) })
	return sorted
}

// readLease returns what a Lease says.
func readLease(lease *coordinationv1.Lease, duration time.Duration) Lease {
	l := Lease{Name: lease.Name, Holder: holderOf(lease)}
	if lease.Spec.AcquireTime != nil {
		l.Since = lease.Spec.AcquireTime.Time
	}
	if lease.Spec.RenewTime == nil {
		return l
	}
	if lease.Spec.LeaseDurationSeconds != nil {
		duration = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	l.Renewed = lease.Spec.RenewTime.Time
	l.Until = l.Renewed.Add(duration)
	return l
}

// LiveMembers returns the identities of the replicas that want shards.
func (l Leases) LiveMembers(now time.Time) (members []string) {
	for _, member := range l.Members {
		if member.IsHeld(now) {
			members = append(members, member.Holder)
		}
	}
	return members
}
