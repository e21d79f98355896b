// Package similar finds what a person may have meant by a word that is not known.
package similar

import (
	"cmp"
	"slices"
	"strings"
)

// Limit returns how much a known word can differ from the given one: typing mistakes, but not
// other words.
func Limit(word string) int { return min(max(1, len(word)/3), 3) }

// Distance returns how many bytes must be inserted, removed, replaced, or exchanged with the next one to turn
// one word into the other. It ignores the case.
func Distance(a, b string) int {
	a = strings.ToLower(a)
	b = strings.ToLower(b)
	before := make([]int, len(b)+1) // the row above the one above
	above := make([]int, len(b)+1)
	row := make([]int, len(b)+1) // the distances of the beginnings of b to a beginning of a
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, above, row = above, row, before
		row[0] = i + 1
		for j := range len(b) {
			replaced := above[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, row[j]+1, above[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// maxWords limits the number of suggestions.
const maxWords = 3

// Words returns the known words that are similar to the given one, the most similar ones
// first.
func Words(word string, known []string) []string {
	var found []string
	for _, each := range known {
		if Distance(word, each) <= Limit(word) && !slices.Contains(found, each) {
			found = append(found, each)
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(Distance(word, a), Distance(word, b)) })
	return found[:min(len(found), maxWords)]
}
