package request

import (
	"slices"
	"strings"

	"github.com/kopf-go/kopf/internal/similar"
)

// maxSuggestions limits the number of ids in a message.
const maxSuggestions = 3

// Suggest returns the known ids of handlers that may have been meant by an unknown one. The
// unknown one is written as in an annotation, with dots instead of slashes, has no field, or
// has a typing mistake.
func Suggest(id string, known []string) []string {
	var written, ofField []string
	for _, each := range known {
		switch {
		case strings.ReplaceAll(each, "/", ".") == strings.ReplaceAll(id, "/", ".") && !slices.Contains(written, each):
			written = append(written, each)
		case strings.HasPrefix(each, id+"/") && !slices.Contains(ofField, each):
			ofField = append(ofField, each)
		}
	}
	for _, found := range [][]string{written, ofField} {
		if len(found) > 0 {
			return found[:min(len(found), maxSuggestions)]
		}
	}
	return similar.Words(id, known)
}

// SuggestVerb returns the verb that may have been meant by an unknown one, or "" if it is known
// or not similar to any.
func SuggestVerb(verb string) Verb {
	known := []string{string(Retry), string(Rerun), string(Skip), string(Suspend)}
	found := similar.Words(verb, known)
	if len(found) == 0 || slices.Contains(known, verb) {
		return ""
	}
	return Verb(found[0])
}
