package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	shownItems      = 10 // of a diff
	shownCharacters = 60 // of a value
	unknown         = "(unknown)"
)

// String formats the differences as one line: "add spec.size: 1; remove spec.mode:
// "slow"". It truncates long values and long lists of items.
func (d Diff) String() string {
	if len(d) == 0 {
		return "no changes"
	}
	parts := make([]string, 0, shownItems+1)
	for _, item := range d[:min(len(d), shownItems)] {
		parts = append(parts, item.String())
	}
	if rest := len(d) - shownItems; rest > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(parts, "; ")
}

// String formats the difference as one line: "change spec.size: 1 -> 2". It truncates
// long values.
func (i Item) String() string {
	subject := string(i.Op)
	if len(i.Path) > 0 {
		subject += " " + field(i.Path)
	}
	switch i.Op {
	case Add:
		return subject + ": " + text(i.New)
	case Remove:
		return subject + ": " + text(i.Old)
	default:
		return subject + ": " + text(i.Old) + " -> " + text(i.New)
	}
}

// field formats a path. Keys can be any text, even with line breaks.
func field(path object.Path) string {
	dotted := path.String()
	if strings.ContainsFunc(dotted, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(dotted)
	}
	return dotted
}

// text formats a value as JSON, which keeps line breaks and control characters out of
// the line.
func text(value any) string {
	if _, ok := value.(Opaque); ok {
		return unknown
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(redact(value)); err != nil {
		return fmt.Sprintf("(%T)", value)
	}
	return truncate(strings.TrimSuffix(out.String(), "\n"))
}

// redact replaces values that are known only by a hash.
func redact(value any) any {
	switch value := value.(type) {
	case Opaque:
		return unknown
	case map[string]any:
		fields := make(map[string]any, len(value))
		for key, item := range value {
			fields[key] = redact(item)
		}
		return fields
	case []any:
		items := make([]any, len(value))
		for i, item := range value {
			items[i] = redact(item)
		}
		return items
	}
	return value
}

func truncate(line string) string {
	characters := []rune(line)
	if len(characters) <= shownCharacters {
		return line
	}
	return string(characters[:shownCharacters-1]) + "…"
}
