package assets

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// maxComplaints bounds what is kept of a failing build's output, in lines.
const maxComplaints = 40

// buildLog turns the output of `go build -v` into figures: the go command names
// each module it downloads and each package it compiles. Other lines are kept
// for the message of a failed build. Safe for concurrent use.
type buildLog struct {
	mu                   sync.Mutex
	rest                 []byte
	downloaded, compiled int
	latest               string
	other                []string
}

// Write takes the next piece of output, which need not end with a line.
func (l *buildLog) Write(piece []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, piece...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(piece), nil
		}
		l.rest = rest
		l.add(string(line))
	}
}

func (l *buildLog) add(line string) {
	if module, found := strings.CutPrefix(line, "go: downloading "); found {
		l.downloaded++
		l.latest = module
		return
	}
	if line != "" && !strings.ContainsAny(line, " \t") {
		l.compiled++
		l.latest = line
		return
	}
	l.other = append(l.other, line)
	l.other = l.other[max(0, len(l.other)-maxComplaints):]
}

// String sums up the progress so far.
func (l *buildLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	if l.downloaded > 0 {
		parts = append(parts, fmt.Sprintf("%d modules downloaded", l.downloaded))
	}
	parts = append(parts, fmt.Sprintf("%d packages compiled", l.compiled))
	if l.latest != "" {
		parts = append(parts, "now "+l.latest)
	}
	return strings.Join(parts, ", ")
}

// complaints returns what the go command said besides its progress.
func (l *buildLog) complaints() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(append(slices.Clone(l.other), string(l.rest)), "\n")
}
