package handling

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// calls are what handlers have noted, in the order of time.
type calls struct {
	mu    sync.Mutex
	notes []string
}

// note appends a line.
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

// of are the notes that begin with the word.
func (c *calls) of(word string) []string {
	var found []string
	for _, note := range c.all() {
		if strings.HasPrefix(note, word+" ") {
			found = append(found, note)
		}
	}
	return found
}

// attempts are the notes of a handler that was called so many times.
func attempts(id string, count int) []string {
	c := &calls{}
	for retry := range count {
		c.note("%s %d", id, retry)
	}
	return c.all()
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
	var found []string
	for _, line := range j.lines {
		if containsAll(line, texts) {
			found = append(found, line)
		}
	}
	return found
}

func containsAll(line string, texts []string) bool {
	for _, text := range texts {
		if !strings.Contains(line, text) {
			return false
		}
	}
	return true
}

// String is the whole log, for the message of a failed test.
func (j *journal) String() string { return strings.Join(j.with(), "\n") }
