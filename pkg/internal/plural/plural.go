// Package plural chooses between the singular and the plural of English words.
package plural

import "strconv"

// Of returns a number with its words: plural.Of(1, "object is", "objects are") is "1 object is".
func Of(n int, one, many string) string { return strconv.Itoa(n) + " " + Word(n, one, many) }

// Word returns the words for a number, without the number.
func Word(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
