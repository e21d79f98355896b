package heldobjects

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// quietPeriod is how long no further finding must come before a Summary is complete. At a
// start, all objects are looked at one after another.
const quietPeriod = 2 * time.Second

// maxExamples limits the objects that a summary names.
const maxExamples = 3

// Group contains what the objects of one line of a summary have in common.
type Group struct {
	Resource string
	Type     string // the Go type
	Field    string // the field that does not fit
}

// Line is one line of a summary.
type Line struct {
	Group
	Objects  int      // their number
	Handlers []string // the ids of the handlers that are not called
	Examples []string // some of the objects: "namespace/name"
}

// Summary collects the findings of a start, and reports them together when no more come. The
// zero value with a function is empty. It is safe for concurrent use.
type Summary struct {
	// Report is called with each line.
	Report func(Line)

	mu     sync.Mutex
	groups map[Group]*collected
	timer  *time.Timer
}

// collected contains the objects and handlers of one group.
type collected struct {
	objects  map[object.Key]struct{}
	handlers map[string]struct{}
}

// Add adds an object, and the handler that is not called for it.
func (s *Summary) Add(group Group, key object.Key, handlerID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups == nil {
		s.groups = map[Group]*collected{}
	}
	known := s.groups[group]
	if known == nil {
		known = &collected{map[object.Key]struct{}{}, map[string]struct{}{}}
		s.groups[group] = known
	}
	known.objects[key] = struct{}{}
	known.handlers[handlerID] = struct{}{}
	if s.timer == nil {
		s.timer = time.AfterFunc(quietPeriod, s.flush)
		return
	}
	s.timer.Reset(quietPeriod)
}

// Stop drops what was not reported yet.
func (s *Summary) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.groups = nil
}

// flush reports all groups, and forgets them.
func (s *Summary) flush() {
	s.mu.Lock()
	groups := s.groups
	s.groups = nil
	s.mu.Unlock()
	var lines []Line
	for group, known := range groups {
		line := Line{Group: group, Objects: len(known.objects), Handlers: slices.Sorted(maps.Keys(known.handlers))}
		for key := range known.objects {
			line.Examples = append(line.Examples, key.NamespacedName.String())
		}
		slices.Sort(line.Examples)
		line.Examples = line.Examples[:min(len(line.Examples), maxExamples)]
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Field, b.Field))
	})
	for _, line := range lines {
		s.Report(line)
	}
}

// LogLines returns a function for Summary.Report that logs the lines.
func LogLines(log logr.Logger) func(Line) {
	return func(line Line) {
		log.Info("Objects do not fit a Go type. The handlers of that type are not called for them. Correct the objects, or deploy a type that fits.",
			"resource", line.Resource, "type", line.Type, "field", line.Field, "objects", line.Objects,
			"handlers", line.Handlers, "examples", line.Examples)
	}
}
