package selector

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Namespaces contains the names and patterns of the namespaces that an operator is
// restricted to. A pattern is a comma-separated list of globs with "*", "?", and "[…]".
// A "!" before a glob excludes the names that it matches:
//
//	myapp-*,!*-pr-*,*-pr-123
//
// The rightmost matching glob decides, but names that the first glob does not match are
// always excluded. If the first glob is an exclusion, "*" is implied before it.
//
// A label selector begins with "labels:", and is written as for kubectl:
//
//	labels:environment=production,tier in (web, db)
//
// It counts as a pattern. It follows the labels of the namespaces, as the others follow their creations and deletions.
//
// An empty list means the entire cluster. It differs from "*": the operator watches the
// cluster as a whole, and does not need to know its namespaces.
//
// Specification: Scopes, "Namespaces".
type Namespaces []string

// patterned contains the characters that appear in patterns but never in names.
const patterned = ",*?![]"

// labeled begins a label selector.
const labeled = "labels:"

// IsPattern reports whether the text is a pattern or a label selector, not a name.
func IsPattern(text string) bool {
	return strings.HasPrefix(text, labeled) || strings.ContainsAny(text, patterned)
}

// Validate returns an error for label selectors that cannot be read.
func (n Namespaces) Validate() error {
	var problems []error
	for _, text := range n {
		terms, isLabeled := strings.CutPrefix(text, labeled)
		if !isLabeled {
			continue
		}
		parsed, err := labels.Parse(terms)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("the label selector %q of namespaces cannot be read: %w", text, err))
		case parsed.Empty():
			problems = append(problems, fmt.Errorf("the label selector %q of namespaces is empty: use \"*\" for all namespaces", text))
		}
	}
	return errors.Join(problems...)
}

// NeedsLabels reports whether Match needs the labels of a namespace.
func (n Namespaces) NeedsLabels() bool {
	return slices.ContainsFunc(n, func(text string) bool { return strings.HasPrefix(text, labeled) })
}

// Names returns the plain names, sorted and without duplicates.
func (n Namespaces) Names() []string {
	names := slices.DeleteFunc(slices.Clone(n), IsPattern)
	slices.Sort(names)
	return slices.Compact(names)
}

// Patterns returns the patterns, sorted and without duplicates.
func (n Namespaces) Patterns() []string {
	return slices.DeleteFunc(slices.Clone(n), func(text string) bool { return !IsPattern(text) })
}

// Match reports whether the namespace with the name and the labels is included. An empty list includes all.
func (n Namespaces) Match(name string, its map[string]string) bool {
	return len(n) == 0 || slices.ContainsFunc(n, func(text string) bool {
		terms, isLabeled := strings.CutPrefix(text, labeled)
		if !isLabeled {
			return MatchNamespace(name, text)
		}
		selector, err := labels.Parse(terms)
		return err == nil && selector.Matches(labels.Set(its))
	})
}

// MatchNamespace reports whether the name matches one pattern of names.
func MatchNamespace(name, pattern string) bool {
	globs := strings.Split(pattern, ",")
	for i := range globs {
		globs[i] = strings.TrimSpace(globs[i])
	}
	if strings.HasPrefix(globs[0], "!") {
		globs = slices.Insert(globs, 0, "*")
	}
	matches := matchesGlob(name, globs[0])
	if !matches {
		return false
	}
	for _, glob := range globs[1:] {
		exclusion := strings.HasPrefix(glob, "!")
		if matchesGlob(name, strings.TrimLeft(glob, "!")) {
			matches = !exclusion
		}
	}
	return matches
}

// matchesGlob reports whether the name matches one glob. In the specification, "!" negates a
// class, and other special characters of path.Match have no meaning.
func matchesGlob(name, glob string) bool {
	matches, err := path.Match(strings.NewReplacer("[!", "[^", "[^", `[\^`, `\`, `\\`).Replace(glob), name)
	return matches && err == nil
}
