package main

import (
	"maps"
	"slices"
)

// drawing is a picture of rooms, one above the other, with arrows between them.
type drawing struct {
	// arrows is the number of all arrows; back is the number of those that run up.
	arrows, back int
	// order names the rooms from top to bottom, so that the fewest arrows run up.
	order []string
	// upward are the pairs of rooms between which arrows run up.
	upward []counted
}

// arrow points from one room to another one.
type arrow struct{ from, to string }

// draw finds the order of the rooms in which the fewest arrows run up. The number of
// arrows between two rooms is their weight. It tries all orders, one set of rooms
// after another, and so takes at most 20 rooms.
func draw(arrows map[arrow]int) drawing {
	rooms := roomsOf(arrows)
	all := uint(1)<<len(rooms) - 1
	// fewest is the smallest number of arrows up among the lowest rooms, for every
	// set of them; top is the upmost room of the set in that case.
	fewest, top := make([]int, all+1), make([]int, all+1)
	for set := uint(1); set <= all; set++ {
		fewest[set] = -1
		for room := range rooms {
			rest := set &^ (1 << room)
			if rest == set {
				continue
			}
			if up := fewest[rest] + between(arrows, rooms, rest, room); fewest[set] < 0 || up < fewest[set] {
				fewest[set], top[set] = up, room
			}
		}
	}
	found := drawing{back: fewest[all]}
	for set := all; set != 0; set &^= 1 << top[set] {
		found.order = append(found.order, rooms[top[set]])
	}
	found.count(arrows)
	return found
}

// between counts the arrows from the rooms of a set to another room.
func between(arrows map[arrow]int, rooms []string, set uint, to int) int {
	count := 0
	for from := range rooms {
		if set&(1<<from) != 0 {
			count += arrows[arrow{rooms[from], rooms[to]}]
		}
	}
	return count
}

func roomsOf(arrows map[arrow]int) []string {
	found := map[string]bool{}
	for one := range arrows {
		found[one.from], found[one.to] = true, true
	}
	return slices.Sorted(maps.Keys(found))
}

func (d *drawing) count(arrows map[arrow]int) {
	for one, count := range arrows {
		d.arrows += count
		if slices.Index(d.order, one.from) > slices.Index(d.order, one.to) {
			d.upward = append(d.upward, counted{one.from + " → " + one.to, count})
		}
	}
	slices.SortFunc(d.upward, largestFirst)
}
