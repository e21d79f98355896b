package binaries

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// maxComplaints is the number of lines that are kept of the output of a failed build.
const maxComplaints = 40

// buildLog counts what `go build -v` prints: the modules that it downloads and the
// packages that it compiles. It keeps other lines for the message of a failed build.
// It is safe for concurrent use.
type buildLog struct {
	mu                   sync.Mutex
	rest                 []byte
	downloaded, compiled int
	latest               string
	other                []string
}

// Write adds a piece of output. It need not end with a complete line.
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

// String summarizes the progress.
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

// complaints returns what the go command printed apart from its progress.
func (l *buildLog) complaints() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(append(slices.Clone(l.other), string(l.rest)), "\n")
}
