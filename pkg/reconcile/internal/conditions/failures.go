package conditions

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/condition"
)

// failures contains the messages of handlers that have failed permanently. The message of the
// Stalled condition has one line for each, from which they are read again.
type failures map[string]string

var failureLine = regexp.MustCompile(`^Handler (\S+) failed permanently: (.*)$`)

// maxMessage limits the length of one message, and maxFailures the number of lines: the API
// conventions allow 32,768 bytes for all of them.
const (
	maxMessage  = 400
	maxFailures = 64
)

// lines returns the lines of the failures in order.
func (f failures) lines() []string {
	lines := make([]string, 0, len(f))
	for i, id := range slices.Sorted(maps.Keys(f)) {
		if i == maxFailures {
			return append(lines, fmt.Sprintf("%d other handlers failed permanently.", len(f)-i))
		}
		lines = append(lines, fmt.Sprintf("Handler %s failed permanently: %s", id, clean(f[id])))
	}
	return lines
}

// failures returns the failures that count: those of the cycle, and former ones.
func (s Situation) failures(stored condition.List) failures {
	all := read(stored)
	maps.DeleteFunc(all, func(id, _ string) bool { return s.IsOver(id) })
	maps.Copy(all, s.Failed)
	return all
}

// FailuresIn returns the messages of the handlers that have failed permanently, as the conditions of
// an object say.
func FailuresIn(body map[string]any) map[string]string { return read(condition.Of(body)) }

// read reads the failures from the message of the Stalled condition.
func read(stored condition.List) failures {
	all := failures{}
	message, _ := stored.Get(condition.Stalled)["message"].(string)
	for line := range strings.Lines(message) {
		if found := failureLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); len(found) == 3 {
			all[found[1]] = found[2]
		}
	}
	return all
}

// clean makes one short line of a message.
func clean(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}
