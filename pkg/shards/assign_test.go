package shards

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestShardsWithoutMembersAreAssignedToNone(t *testing.T) {
	if got := Assign(3, nil); !slices.Equal(got, []string{"", "", ""}) {
		t.Errorf("got %q", got)
	}
}

func TestAssignmentDoesNotDependOnTheOrderOfMembers(t *testing.T) {
	members := []string{"a", "b", "c", "d", "e"}
	want := Assign(64, members)
	rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	if got := Assign(64, members); !slices.Equal(got, want) {
		t.Errorf("got %q for %q, want %q", got, members, want)
	}
}

// countHeld counts the shards of each member.
func countHeld(assigned []string) map[string]int {
	held := map[string]int{}
	for _, member := range assigned {
		held[member]++
	}
	return held
}

// unavoidable returns how many shards move at least when one member joins or leaves.
func unavoidable(before, after []string) (count int) {
	held := countHeld(after)
	joined := len(held) > len(countHeld(before))
	if joined {
		return len(after) / len(held)
	}
	for member, has := range countHeld(before) {
		if held[member] == 0 {
			count += has
		}
	}
	return count
}

// Members join and leave at random. The figures are properties of the hash, so the test is deterministic.
func TestMembersThatJoinOrLeaveMoveFewShards(t *testing.T) {
	tests := []struct {
		number, most int
		mean         float64
	}{{16, 7, 1.4}, {64, 12, 3}}
	for _, test := range tests {
		random := rand.New(rand.NewPCG(1, 2))
		steps, sum := 0, 0
		for range 50 {
			members := []string{"replica-0"}
			before := Assign(test.number, members)
			for step := range 60 {
				if i := random.IntN(len(members)); len(members) == 10 || len(members) > 1 && random.IntN(2) == 0 {
					members = slices.Delete(members, i, i+1)
				} else {
					members = append(members, fmt.Sprintf("replica-%d_%x", step, random.Uint64()))
				}
				after := Assign(test.number, members)
				held := countHeld(after)
				for _, member := range members {
					if has, share := held[member], test.number/len(members); has < share || has > share+1 {
						t.Fatalf("%s of %d members has %d of %d shards", member, len(members), has, test.number)
					}
				}
				moved := -unavoidable(before, after)
				for shard := range after {
					if after[shard] != before[shard] {
						moved++
					}
				}
				if moved > test.most {
					t.Errorf("%d shards: %d move more than necessary", test.number, moved)
				}
				steps++
				sum += moved
				before = after
			}
		}
		mean := float64(sum) / float64(steps)
		t.Logf("%d shards: on average, %.2f move more than necessary", test.number, mean)
		if mean > test.mean {
			t.Errorf("%d shards: on average, %.2f move more than necessary, want at most %.2f", test.number, mean, test.mean)
		}
	}
}
