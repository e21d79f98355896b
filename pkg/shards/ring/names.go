package ring

import (
	"fmt"
	"hash/fnv"
	"regexp"

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
	number map[string]int // of a shard, by the name of its Lease
}

func newNames(config Config) names {
	base := shorten(config.Name, maxName)
	n := names{
		gate: config.Name, member: base + "-replica-" + hashOf(config.Identity),
		value: shorten(config.Name, validation.LabelValueMaxLength), number: map[string]int{},
	}
	for shard := range config.Division.Number {
		name := fmt.Sprintf("%s-shard-%d", base, shard)
		n.shards = append(n.shards, name)
		n.number[name] = shard
	}
	return n
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

// divisionText is how shards.Division writes a division. The identities of replicas that elect a leader have no spaces.
var divisionText = regexp.MustCompile(`^[0-9]+ shards by (uid|namespace)$`)
