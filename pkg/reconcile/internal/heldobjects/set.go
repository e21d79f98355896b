package heldobjects

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Finding is the kind of a reason that holds objects, and the part of the engine that has
// found it. Each part replaces only its own findings.
type Finding struct {
	Reason metrics.HeldReason
	By     string
}

// Set contains the held objects. The zero value is empty. It is safe for concurrent use.
type Set struct {
	mu      sync.Mutex
	objects map[object.Key]map[Finding]map[string]problem
}

// problem is why a handler is not called, and since when.
type problem struct {
	text  string
	since time.Time
}

// Replace replaces what is known about an object under one kind of finding: the ids of the
// handlers that are not called, each with the problem. It returns the sorted ids that are new
// or have another problem.
func (s *Set) Replace(key object.Key, of Finding, problems map[string]string) (fresh []string) {
	return s.ReplaceSince(key, of, problems, time.Now())
}

// ReplaceSince is Replace, with the time since when new ids are held.
func (s *Set) ReplaceSince(key object.Key, of Finding, problems map[string]string, since time.Time) (fresh []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(problems) == 0 { // nearly always
		delete(s.objects[key], of)
		if len(s.objects[key]) == 0 {
			delete(s.objects, key)
		}
		return nil
	}

	former := s.objects[key][of]
	now := make(map[string]problem, len(problems))
	for _, id := range slices.Sorted(maps.Keys(problems)) {
		before, known := former[id]
		if !known || before.text != problems[id] {
			fresh = append(fresh, id)
		}
		now[id] = (problem{problems[id], since})
		if known {
			now[id] = problem{problems[id], before.since}
		}
	}
	if s.objects == nil {
		s.objects = map[object.Key]map[Finding]map[string]problem{}
	}
	if s.objects[key] == nil {
		s.objects[key] = map[Finding]map[string]problem{}
	}
	s.objects[key][of] = now
	return fresh
}

// Since returns since when a handler is not called for an object. It reports false if it is.
func (s *Set) Since(key object.Key, of Finding, id string) (since time.Time, isHeld bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, isHeld := s.objects[key][of][id]
	return held.since, isHeld
}

// Forget removes an object.
func (s *Set) Forget(key object.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
}

// Counts returns the numbers of held objects by resource and reason, in order.
func (s *Set) Counts() []metrics.Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	numbers := map[metrics.Held]int{}
	for key, findings := range s.objects {
		reasons := map[metrics.HeldReason]bool{}
		for of := range findings {
			reasons[of.Reason] = true
		}
		for reason := range reasons {
			numbers[metrics.Held{Resource: key.Resource, Reason: reason}]++
		}
	}
	counts := make([]metrics.Held, 0, len(numbers))
	for held, number := range numbers {
		held.Objects = number
		counts = append(counts, held)
	}
	slices.SortFunc(counts, func(a, b metrics.Held) int {
		return strings.Compare(a.Resource+" "+string(a.Reason), b.Resource+" "+string(b.Reason))
	})
	return counts
}
