package selector

import (
	"path"
	"slices"
	"strings"
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
// An empty list means the entire cluster. It differs from "*": the operator watches the
// cluster as a whole, and does not need to know its namespaces.
//
// Specification: Scopes, "Namespaces".
type Namespaces []string

// patterned contains the characters that appear in patterns but never in names.
const patterned = ",*?![]"

// IsPattern reports whether the text is a pattern, not a name.
func IsPattern(text string) bool { return strings.ContainsAny(text, patterned) }

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

// Match reports whether the namespace is included. An empty list includes all.
func (n Namespaces) Match(name string) bool {
	return len(n) == 0 || slices.ContainsFunc(n, func(pattern string) bool { return MatchNamespace(name, pattern) })
}

// MatchNamespace reports whether the name matches one pattern.
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
