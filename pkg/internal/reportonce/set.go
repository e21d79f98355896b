package reportonce

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Set remembers what was reported. The zero value is empty, and costs a pointer.
// It is not safe for concurrent use.
type Set map[string]struct{}

// First reports whether the text is new, and remembers it.
func (s *Set) First(text string) bool {
	if s.Has(text) {
		return false
	}
	if *s == nil {
		*s = Set{}
	}
	(*s)[text] = struct{}{}
	return true
}

// Replace remembers only these of all texts with a prefix, and returns those that are new. So a Set does not
// grow with what has been over for long, and says it again when it returns.
func (s *Set) Replace(prefix string, texts ...string) (fresh []string) {
	for known := range *s {
		if text, has := strings.CutPrefix(known, prefix); has && !slices.Contains(texts, text) {
			delete(*s, known)
		}
	}
	for _, text := range texts {
		if s.First(prefix + text) {
			fresh = append(fresh, text)
		}
	}
	return fresh
}

// Repeat counts how often a text has followed itself under a name: 1 is the first time. Another text begins
// anew.
func (s *Set) Repeat(name, text string) (times int) {
	prefix := name + "\x00"
	for known := range *s {
		if rest, has := strings.CutPrefix(known, prefix); has {
			if count, same := strings.CutSuffix(rest, "\x00"+text); same {
				times, _ = strconv.Atoi(count)
			}
			delete(*s, known)
		}
	}
	times++
	s.First(prefix + strconv.Itoa(times) + "\x00" + text)
	return times
}

// Has reports whether the text is known.
func (s *Set) Has(text string) bool {
	_, known := (*s)[text]
	return known
}

// SharedSet is a Set for concurrent use.
type SharedSet struct{ known sync.Map }

// First reports whether the text is new, and remembers it.
func (s *SharedSet) First(text string) bool {
	_, known := s.known.LoadOrStore(text, true)
	return !known
}

// Has reports whether the text is known.
func (s *SharedSet) Has(text string) bool {
	_, known := s.known.Load(text)
	return known
}
