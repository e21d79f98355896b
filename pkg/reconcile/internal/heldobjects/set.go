package heldobjects

import (
	"maps"
	"slices"
	"strings"
	"sync"

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
	objects map[object.Key]map[Finding]map[string]string
}

// Replace replaces what is known about an object under one kind of finding: the ids of the
// handlers that are not called, each with the problem. It returns the sorted ids that are new
// or have another problem.
func (s *Set) Replace(key object.Key, of Finding, problems map[string]string) (fresh []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(problems) == 0 && s.objects[key] == nil {
		return nil // nearly always
	}
	former := s.objects[key][of]
	for _, id := range slices.Sorted(maps.Keys(problems)) {
		if problem, known := former[id]; !known || problem != problems[id] {
			fresh = append(fresh, id)
		}
	}
	s.put(key, of, problems)
	return fresh
}

// put stores the problems. The lock is held.
func (s *Set) put(key object.Key, of Finding, problems map[string]string) {
	if len(problems) > 0 {
		if s.objects == nil {
			s.objects = map[object.Key]map[Finding]map[string]string{}
		}
		if s.objects[key] == nil {
			s.objects[key] = map[Finding]map[string]string{}
		}
		s.objects[key][of] = problems
		return
	}
	delete(s.objects[key], of)
	if len(s.objects[key]) == 0 {
		delete(s.objects, key)
	}
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
