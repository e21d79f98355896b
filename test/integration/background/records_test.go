package background

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// runs are those of the handlers, by handler and object as in "watch one".
type runs struct {
	mu       sync.Mutex
	begun    map[string]int
	current  map[string]int
	overlaps []string
}

func newRuns() *runs { return &runs{begun: map[string]int{}, current: map[string]int{}} }

// enter notes a beginning; what it returns notes the end.
func (r *runs) enter(name string) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun[name]++
	if r.current[name]++; r.current[name] > 1 {
		r.overlaps = append(r.overlaps, name)
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.current[name]--
	}
}

// count is how many runs have begun, for Eventually too.
func (r *runs) count(name string) func() int {
	return func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.begun[name]
	}
}

// running is how many there are now of all handlers whose name begins so.
func (r *runs) running(start string) func() int {
	return func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		total := 0
		for name, current := range r.current {
			if strings.HasPrefix(name, start) {
				total += current
			}
		}
		return total
	}
}

func (r *runs) overlapping() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.overlaps)
}

// calls are what handlers have noted, in the order of time.
type calls struct {
	mu    sync.Mutex
	notes []string
}

func (c *calls) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

func (c *calls) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.notes...)
}

// journal is the log of operators.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.lines = append(j.lines, line)
		if os.Getenv("KOPF_TEST_LOG") != "" {
			fmt.Fprintln(os.Stderr, line)
		}
	}, funcr.Options{LogTimestamp: true})
}

// with are the lines that have all of the texts.
func (j *journal) with(texts ...string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lacking := func(line string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
	}
	return slices.DeleteFunc(slices.Clone(j.lines), lacking)
}

// String is the whole log, for the message of a failed test.
func (j *journal) String() string { return strings.Join(j.with(), "\n") }
