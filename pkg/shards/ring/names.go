package ring

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// label is on all Leases of a ring. Its value is the name of the ring.
const label = "kopf.dev/ring"

// maxName is how long a name can be so that the names of Leases made from it are valid.
const maxName = validation.DNS1123SubdomainMaxLength - len("-replica-0123456789abcdef")

// names are the names of the Leases of a ring.
type names struct {
	gate   string
	member string // of this replica
	value  string // of the label
	shards []string

	members string // the beginning of the names of all members
}

func newNames(config Config) names {
	n := names{
		gate: config.Name, members: memberPrefix(config.Name),
		value: shorten(config.Name, validation.LabelValueMaxLength),
	}
	n.member = n.members + hashOf(config.Identity)
	for shard := range config.Division.Number {
		n.shards = append(n.shards, ShardLease(config.Name, shard))
	}
	return n
}

// isOther reports whether a Lease is that of another replica.
func (n names) isOther(name string) bool {
	return strings.HasPrefix(name, n.members) && name != n.member
}

// isPermanent reports whether a Lease stays when its holder has gone.
func (n names) isPermanent(name string) bool {
	return name == n.gate || slices.Contains(n.shards, name)
}

// narrow narrows a request to the Leases of the ring.
func (n names) narrow(options *metav1.ListOptions) { options.LabelSelector = label + "=" + n.value }

// shorten shortens a name that is too long. Its hash keeps it apart from others.
func shorten(name string, longest int) string {
	if len(name) <= longest {
		return name
	}
	hash := hashOf(name)
	return name[:longest-len(hash)-1] + "-" + hash
}

func hashOf(text string) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text)) // never fails
	return fmt.Sprintf("%016x", hash.Sum64())
}
