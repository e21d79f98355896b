package selector

import (
	"path"
	"slices"
	"strings"
)

// Namespaces are the names and patterns of those namespaces that an operator is
// restricted to. A pattern is a comma-separated list of globs with "*", "?" and
// "[…]"; with "!" before a glob, what it matches is excluded:
//
//	myapp-*,!*-pr-*,*-pr-123
//
// The rightmost glob that fits decides, but what the first one does not fit is
// out in any case. If the first one is an exclusion, "*" is implied before it.
//
// An empty list is the whole cluster, which is not the same as "*": the cluster
// is watched at once, and its namespaces need not be known.
//
// Specification: Scopes, "Namespaces".
type Namespaces []string

// patterned are the characters that no name has, and every pattern.
const patterned = ",*?![]"

// IsPattern tells a pattern from a name.
func IsPattern(text string) bool { return strings.ContainsAny(text, patterned) }

// Names are those that are named, sorted, and each of them once.
func (n Namespaces) Names() []string {
	names := slices.DeleteFunc(slices.Clone(n), IsPattern)
	slices.Sort(names)
	return slices.Compact(names)
}

// Patterns are the others.
func (n Namespaces) Patterns() []string {
	return slices.DeleteFunc(slices.Clone(n), func(text string) bool { return !IsPattern(text) })
}

// Match reports whether a namespace is one of those; with an empty list all are.
func (n Namespaces) Match(name string) bool {
	return len(n) == 0 || slices.ContainsFunc(n, func(pattern string) bool { return MatchNamespace(name, pattern) })
}

// MatchNamespace reports whether the name fits one pattern.
func MatchNamespace(name, pattern string) bool {
	globs := strings.Split(pattern, ",")
	for i := range globs {
		globs[i] = strings.TrimSpace(globs[i])
	}
	if strings.HasPrefix(globs[0], "!") {
		globs = slices.Insert(globs, 0, "*")
	}
	matches := fits(name, globs[0])
	if !matches {
		return false
	}
	for _, glob := range globs[1:] {
		exclusion := strings.HasPrefix(glob, "!")
		if fits(name, strings.TrimLeft(glob, "!")) {
			matches = !exclusion
		}
	}
	return matches
}

// fits reports whether the name fits one glob. In the specification a class is negated
// by "!", and nothing has a meaning for path.Match alone.
func fits(name, glob string) bool {
	matches, err := path.Match(strings.NewReplacer("[!", "[^", "[^", `[\^`, `\`, `\\`).Replace(glob), name)
	return matches && err == nil
}
