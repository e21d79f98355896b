package main

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// equivalentText lists the mutants that no test can kill, with the reasons:
//
//	pkg/reconcile/internal/write/commit.go Session.commit
//		if u.Cycle != nil {
//		u.Cycle != nil → true
//		Why this makes no difference.
//
// The first lines name the file and the function, the line of the source, and the mutant. If a
// function has several such mutants, a number after its name chooses one.
//
//go:embed equivalent.txt
var equivalentText string

// parseEquivalents returns the reasons of equivalent mutants.
func parseEquivalents(text string) (map[identity]string, error) {
	reasons := map[identity]string{}
	for entry := range strings.SplitSeq(text, "\n\n") {
		if entry = strings.TrimSpace(entry); entry == "" || strings.HasPrefix(entry, "#") {
			continue
		}
		lines := strings.Split(entry, "\n")
		if len(lines) != 4 {
			return nil, fmt.Errorf("an equivalent mutant has four lines: its function, the source, the change, and the reason; got:\n%s", entry)
		}
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		id := identity{source: lines[1], change: lines[2], ordinal: 1}
		place := strings.Fields(lines[0])
		if len(place) < 2 || len(place) > 3 {
			return nil, fmt.Errorf("an equivalent mutant begins with its file and function; got: %s", lines[0])
		}
		id.file, id.function = place[0], place[1]
		if len(place) == 3 {
			ordinal, err := strconv.Atoi(place[2])
			if err != nil {
				return nil, fmt.Errorf("the number in %q: %w", lines[0], err)
			}
			id.ordinal = ordinal
		}
		reasons[id] = lines[3]
	}
	return reasons, nil
}

// entry returns the mutant in the form of the list.
func (id identity) entry() string {
	place := id.file + " " + id.function
	if id.ordinal > 1 {
		place += " " + strconv.Itoa(id.ordinal)
	}
	return place + "\n\t" + id.source + "\n\t" + id.change + "\n"
}

// outdated returns the entries of the list that match no mutant.
func outdated(reasons map[identity]string, mutants []*mutant) []string {
	known := map[identity]bool{}
	for _, m := range mutants {
		known[m.id] = true
	}
	var entries []string
	for id := range reasons {
		if !known[id] {
			entries = append(entries, id.entry())
		}
	}
	return entries
}
