package shards

import (
	"cmp"
	"slices"
	"strconv"
)

// Assign returns which member should hold each shard, or "" for all shards without members. It depends on nothing but its
// arguments, and not on the order of the members, so members that know each other agree without talking. Every member
// gets as many shards as the others, or one more.
//
// This is rendezvous hashing with a bounded load. Each pair of a member and a shard has a weight, which is a hash. The
// heaviest pairs are served first. So a member that joins takes shards from all the others, a member that leaves gives
// shards to all of them, and few shards move from one of the others to another one.
func Assign(number int, members []string) []string {
	assigned := make([]string, number)
	if len(members) == 0 {
		return assigned
	}
	type pair struct {
		member string
		shard  int
		weight uint64
	}
	pairs := make([]pair, 0, number*len(members))
	for _, member := range members {
		for shard := range number {
			pairs = append(pairs, pair{member, shard, mix(hashOf(strconv.Itoa(shard) + " " + member))})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.member, b.member), cmp.Compare(a.shard, b.shard))
	})
	share := number / len(members)
	larger := number % len(members) // how many members get one shard more
	held := map[string]int{}
	taken := make([]bool, number)
	for _, p := range pairs {
		switch {
		case taken[p.shard] || held[p.member] > share || held[p.member] == share && larger == 0:
			continue
		case held[p.member] == share:
			larger--
		}
		taken[p.shard] = true
		assigned[p.shard] = p.member
		held[p.member]++
	}
	return assigned
}
