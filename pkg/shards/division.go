// Package shards divides the objects that an operator handles among its replicas.
//
// A Division is into a fixed number of shards, the same in all replicas. The hash of an object's uid, or of its namespace,
// says which shard the object is in, so nothing is written to objects, and an object never changes its shard. A shard is
// a range of the hash, as in the sharded lists and watches of Kubernetes (KEP-5866), so that the API server can
// filter what a replica watches.
//
// Which replica holds which shards, the replicas agree on by Leases: see package ring.
//
// This package carries no compatibility promise.
package shards

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
)

// Division is how objects are divided into shards. The zero value does not divide them: all are in shard 0.
type Division struct {
	// Number is the number of shards.
	Number int
	// ByNamespace keeps the objects of a namespace together. Objects without a namespace are divided by their uid.
	ByNamespace bool
}

// IsZero reports whether objects are not divided.
func (d Division) IsZero() bool { return d.Number == 0 }

// Of returns the shard of an object, from 0 to Number-1.
func (d Division) Of(namespace string, uid types.UID) int {
	if d.IsZero() {
		return 0
	}
	hash := hashOf(string(uid))
	if d.ByNamespace && namespace != "" {
		hash = mix(hashOf(namespace))
	}
	shard, _ := bits.Mul64(hash, uint64(d.Number)) //nolint:gosec // not negative
	return int(shard)                              //nolint:gosec // less than Number
}

// hashOf is the hash of Kubernetes.
func hashOf(value string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(value)) // never fails
	return hash.Sum64()
}

// mix spreads hashes of similar names, such as team-1 and team-2. They differ in their lowest bits, and the highest bits
// choose the shard. Uids are random, and need no mixing. (This is the finalizer of MurmurHash3.)
func mix(hash uint64) uint64 {
	hash = (hash ^ hash>>33) * 0xff51afd7ed558ccd
	hash = (hash ^ hash>>33) * 0xc4ceb9fe1a85ec53
	return hash ^ hash>>33
}

// Selector returns the selector of sharded lists and watches for the objects of some shards of a resource, or "" if the
// API server cannot select them: its hashes of namespaces are not spread. The set must not be empty. An API server
// without sharded lists ignores the selector.
func (d Division) Selector(held Set, namespaced bool) string {
	if d.IsZero() || d.ByNamespace && namespaced {
		return ""
	}
	var ranges []sharding.ShardRangeRequirement
	for _, shard := range held.Sorted() {
		last := len(ranges) - 1
		if last >= 0 && ranges[last].End == d.start(shard) {
			ranges[last].End = d.start(shard + 1)
			continue
		}
		ranges = append(ranges, sharding.ShardRangeRequirement{Key: "object.metadata.uid", Start: d.start(shard), End: d.start(shard + 1)})
	}
	return sharding.NewSelector(ranges...).String()
}

// start returns the lowest hash of a shard, as in selectors.
func (d Division) start(shard int) string {
	if shard == d.Number {
		return "0x10000000000000000"
	}
	lowest, rest := bits.Div64(uint64(shard), 0, uint64(d.Number)) //nolint:gosec // neither is negative
	if rest > 0 {
		lowest++
	}
	return fmt.Sprintf("0x%016x", lowest)
}

// String returns the division in words, such as "16 shards by uid". Equal divisions have equal texts.
func (d Division) String() string {
	switch {
	case d.IsZero():
		return "no shards"
	case d.ByNamespace:
		return fmt.Sprintf("%d shards by namespace", d.Number)
	default:
		return fmt.Sprintf("%d shards by uid", d.Number)
	}
}

// divisionText matches what String returns for a division into shards.
var divisionText = regexp.MustCompile(`^([0-9]+) shards by (uid|namespace)$`)

// Parse returns the division with a text. It reports false for other texts.
func Parse(text string) (d Division, ok bool) {
	found := divisionText.FindStringSubmatch(text)
	if found == nil {
		return Division{}, false
	}
	number, err := strconv.Atoi(found[1])
	if err != nil || number < 1 {
		return Division{}, false
	}
	return Division{Number: number, ByNamespace: found[2] == "namespace"}, true
}

// Set is a set of shards. The zero value is empty. Sets are not changed: With and Without return other ones.
type Set struct {
	has []bool // by shard
}

// SetOf returns a set of shards.
func SetOf(shards ...int) (s Set) {
	for _, shard := range shards {
		s = s.With(shard)
	}
	return s
}

// Has reports whether a shard is in the set.
func (s Set) Has(shard int) bool { return shard < len(s.has) && s.has[shard] }

// IsEmpty reports whether no shard is in the set.
func (s Set) IsEmpty() bool { return !slices.Contains(s.has, true) }

// Len returns the number of shards in the set.
func (s Set) Len() int { return len(s.Sorted()) }

// And returns the shards that are in both sets.
func (s Set) And(other Set) (both Set) {
	for _, shard := range s.Sorted() {
		if other.Has(shard) {
			both = both.With(shard)
		}
	}
	return both
}

// With returns the set with another shard.
func (s Set) With(shard int) Set { return s.set(shard, true) }

// Without returns the set without a shard.
func (s Set) Without(shard int) Set { return s.set(shard, false) }

func (s Set) set(shard int, has bool) Set {
	changed := make([]bool, max(len(s.has), shard+1))
	copy(changed, s.has)
	changed[shard] = has
	return Set{changed}
}

// Sorted returns the shards in the set.
func (s Set) Sorted() (shards []int) {
	for shard, has := range s.has {
		if has {
			shards = append(shards, shard)
		}
	}
	return shards
}

// Equal reports whether two sets have the same shards.
func (s Set) Equal(other Set) bool { return slices.Equal(s.Sorted(), other.Sorted()) }

// String lists the shards, such as "0-4, 7".
func (s Set) String() string {
	var parts []string
	sorted := s.Sorted()
	for i := 0; i < len(sorted); {
		end := i
		for end+1 < len(sorted) && sorted[end+1] == sorted[end]+1 {
			end++
		}
		part := strconv.Itoa(sorted[i])
		if end > i {
			part += "-" + strconv.Itoa(sorted[end])
		}
		parts = append(parts, part)
		i = end + 1
	}
	return strings.Join(parts, ", ")
}
