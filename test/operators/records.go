package operators

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// Calls collects notes of handlers in chronological order. The zero value is ready to
// use. It is safe for concurrent use.
type Calls struct {
	mu    sync.Mutex
	notes []string
}

// Note appends a line.
func (c *Calls) Note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// All returns the notes so far. It is never nil.
func (c *Calls) All() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.notes...)
}

// Of returns the notes that begin with the word.
func (c *Calls) Of(word string) []string {
	return slices.DeleteFunc(c.All(), func(note string) bool { return !strings.HasPrefix(note, word+" ") })
}

// Journal collects the log lines of operators. The zero value is ready to use. It is
// safe for concurrent use.
type Journal struct {
	mu    sync.Mutex
	lines []string
}

// Logger returns a logger that writes to the journal, and also to standard error if
// KOPF_TEST_LOG is set.
func (j *Journal) Logger() logr.Logger {
	return funcr.New(func(_, line string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.lines = append(j.lines, line)
		if os.Getenv("KOPF_TEST_LOG") != "" {
			fmt.Fprintln(os.Stderr, line)
		}
	}, funcr.Options{LogTimestamp: true})
}

// With returns the lines that contain all texts.
func (j *Journal) With(texts ...string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(j.lines), func(line string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
	})
}

// String returns the whole log, for the message of a failed test.
func (j *Journal) String() string { return strings.Join(j.With(), "\n") }
