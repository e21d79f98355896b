package picture

import (
	"regexp"
	"slices"
	"strings"
)

// replacements stand for what differs from run to run.
var replacements = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "2026-01-01T12:00:00.000Z"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:40000"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "00000000-0000-0000-0000-000000000000"},
}

// sometimes matches lines that only some runs have: the API server of the first seconds
// refuses to list the objects of a new definition, and the operator tries again.
var sometimes = regexp.MustCompile(`The objects cannot be watched yet|The objects are watched again`)

// Normalize returns an output without what differs from run to run: times, ports, ids, and
// the folders, which are given with their replacements.
func Normalize(output string, folders map[string]string) string {
	var kept strings.Builder
	for line := range strings.Lines(output) {
		if sometimes.MatchString(line) {
			continue
		}
		for _, one := range replacements {
			line = one.pattern.ReplaceAllString(line, one.with)
		}
		for folder, with := range folders {
			line = strings.ReplaceAll(line, folder, with)
		}
		kept.WriteString(line)
	}
	return kept.String()
}

// SameLines reports whether two normalized outputs have the same lines. Their order may
// differ, because an operator, its events, and its objects are watched at the same time.
func SameLines(a, b string) bool { return slices.Equal(sorted(a), sorted(b)) }

func sorted(text string) []string { return slices.Sorted(strings.Lines(text)) }
