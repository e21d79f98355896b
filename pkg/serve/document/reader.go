package document

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kopf-go/kopf/internal/similar"
)

// reader reads values of a document, and collects its mistakes.
type reader struct {
	file   string
	prefix string // instead of the file and the line, if the document has none
	errs   []error
	depth  int // of the current value
}

// maxDepth is how deeply values can be nested. An alias can make a value that contains itself.
const maxDepth = 100

// enter begins a nested value, and reports whether it can be read. It needs a leave.
func (r *reader) enter(n *yaml.Node, what string) bool {
	r.depth++
	if r.depth == maxDepth {
		r.problem(n, "%s is nested too deeply", what)
	}
	return r.depth < maxDepth
}

func (r *reader) leave() { r.depth-- }

// place returns the file and the line of a node.
func (r *reader) place(n *yaml.Node) string {
	if r.prefix != "" {
		return r.prefix
	}
	return fmt.Sprintf("%s:%d", r.file, n.Line)
}

func (r *reader) problem(n *yaml.Node, format string, values ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s: "+format, append([]any{r.place(n)}, values...)...))
}

// resolve returns the node that an alias is for.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// suggest returns the end of a message about an unknown word: the nearest known ones, or else.
func suggest(word string, known []string, otherwise string) string {
	if near := similar.Words(word, known); len(near) > 0 {
		return ": did you mean " + strings.Join(near, " or ") + "?"
	}
	if otherwise == "" {
		return ""
	}
	return ": " + otherwise
}

// each calls a function for each key of a mapping, and reports keys that are given twice.
func (r *reader) each(n *yaml.Node, what string, do func(key, value *yaml.Node)) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		r.problem(n, "%s must be a mapping, not %s", what, describe(n))
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if line, twice := lines[key.Value]; twice {
			r.problem(key, "%s has %s twice: it is also in line %d", what, key.Value, line)
			continue
		}
		lines[key.Value] = key.Line
		do(key, n.Content[i+1])
	}
}

// list returns the items of a list.
func (r *reader) list(n *yaml.Node, what string) []*yaml.Node {
	n = resolve(n)
	if n.Kind != yaml.SequenceNode {
		r.problem(n, "%s must be a list, not %s", what, describe(n))
		return nil
	}
	return n.Content
}

// describe names a value for messages.
func describe(n *yaml.Node) string {
	switch n = resolve(n); {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "empty"
	default:
		return strconv.Quote(n.Value)
	}
}

// text returns a text. Numbers and the like count as texts only in quotes, as in YAML.
func (r *reader) text(n *yaml.Node) string {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		r.problem(n, "expected a text, not %s%s", describe(n), quoteHint(n))
		return ""
	}
	return n.Value
}

// quoteHint says how a value becomes a text.
func quoteHint(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		return ": in quotes, it is one"
	}
	return ""
}

// nonEmpty returns a text that is not empty.
func (r *reader) nonEmpty(n *yaml.Node) string {
	before := len(r.errs)
	value := r.text(n)
	if value == "" && len(r.errs) == before {
		r.problem(n, "expected a text that is not empty")
	}
	return value
}

// texts returns a list of texts; one text is a list of one.
func (r *reader) texts(n *yaml.Node) []string {
	if resolve(n).Kind == yaml.ScalarNode {
		return []string{r.nonEmpty(n)}
	}
	var texts []string
	for _, item := range r.list(n, "it") {
		texts = append(texts, r.nonEmpty(item))
	}
	return texts
}

// command returns a program with its arguments.
func (r *reader) command(n *yaml.Node) []string {
	if n = resolve(n); n.Kind == yaml.ScalarNode {
		r.problem(n, "a command is a list of the program and its arguments, because there is no shell: write [%s]", strings.Join(strings.Fields(n.Value), ", "))
		return nil
	}
	var command []string
	for _, item := range r.list(n, "a command") {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode { // numbers are as good as texts here
			r.problem(item, "an argument must be a text, not %s", describe(item))
			continue
		}
		command = append(command, item.Value)
	}
	if len(command) == 0 && n.Kind == yaml.SequenceNode || len(command) > 0 && command[0] == "" {
		r.problem(n, "the command is empty")
		return nil
	}
	return command
}

// names returns names of variables.
func (r *reader) names(n *yaml.Node) []string {
	var names []string
	for _, item := range r.list(n, "environment") {
		name := r.nonEmpty(item)
		if strings.Contains(name, "=") {
			r.problem(item, "environment has the names of variables that are passed on: put %s into variables", name)
		}
		names = append(names, name)
	}
	return names
}

// variables returns variables with their values.
func (r *reader) variables(n *yaml.Node) map[string]string {
	all := map[string]string{}
	r.each(n, "variables", func(key, value *yaml.Node) {
		value = resolve(value)
		if value.Kind != yaml.ScalarNode {
			r.problem(value, "the variable %s must be a text, not %s", key.Value, describe(value))
		}
		if key.Value == "" || strings.ContainsAny(key.Value, "=\x00") {
			r.problem(key, "%q cannot be the name of a variable", key.Value)
		}
		all[key.Value] = value.Value
	})
	return all
}

// number returns a whole number that is at least the minimum.
func (r *reader) number(n *yaml.Node, minimum int) int {
	n = resolve(n)
	var value int
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || n.Decode(&value) != nil {
		r.problem(n, "expected a whole number, not %s", describe(n))
		return minimum
	}
	if value < minimum {
		r.problem(n, "%d is too small: it must be at least %d", value, minimum)
		return minimum
	}
	return value
}

// flag returns true or false.
func (r *reader) flag(n *yaml.Node) bool {
	n = resolve(n)
	var value bool
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&value) != nil {
		r.problem(n, "expected true or false, not %s", describe(n))
	}
	return value
}

// duration returns a duration that is not negative: as in Go, or a number of seconds.
func (r *reader) duration(n *yaml.Node) time.Duration {
	n = resolve(n)
	d, err := parseDuration(n)
	if err != nil {
		r.problem(n, "%v", err)
	}
	return d
}

// positive returns a duration of more than 0.
func (r *reader) positive(n *yaml.Node) time.Duration {
	before := len(r.errs)
	d := r.duration(n)
	if d == 0 && len(r.errs) == before {
		r.problem(n, "the duration must be more than 0")
	}
	return d
}

func parseDuration(n *yaml.Node) (time.Duration, error) {
	var d time.Duration
	switch n.Tag {
	case "!!int", "!!float":
		var seconds float64
		if err := n.Decode(&seconds); err != nil || math.IsNaN(seconds) || math.Abs(seconds) > float64(math.MaxInt64)/float64(time.Second) {
			return 0, fmt.Errorf("%s is no number of seconds", n.Value)
		}
		d = time.Duration(seconds * float64(time.Second))
	case "!!str":
		var err error
		d, err = time.ParseDuration(n.Value)
		if err != nil {
			return 0, fmt.Errorf("%q is no duration: write 90, 90s, or 1m30s", n.Value)
		}
	default:
		return 0, fmt.Errorf("expected a duration, such as 90, 90s, or 1m30s, not %s", describe(n))
	}
	if d < 0 {
		return 0, fmt.Errorf("the duration %s is negative", n.Value)
	}
	return d, nil
}

// choice returns one of the known words.
func (r *reader) choice(n *yaml.Node, known ...string) string {
	value := r.text(n)
	for _, each := range known {
		if value == each {
			return value
		}
	}
	if value != "" {
		r.problem(n, "%q is unknown%s", value, suggest(value, known, "it must be "+strings.Join(known, ", or ")))
	}
	return ""
}

// value returns any value, as JSON has it: whole numbers are int64.
func (r *reader) value(n *yaml.Node) any {
	defer r.leave()
	if !r.enter(n, "the value") {
		return nil
	}
	n = resolve(n)
	switch n.Kind {
	case yaml.MappingNode:
		mapping := map[string]any{}
		r.each(n, "the value", func(key, value *yaml.Node) { mapping[key.Value] = r.value(value) })
		return mapping
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			list = append(list, r.value(item))
		}
		return list
	}
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return r.flag(n)
	case "!!int":
		var whole int64
		if n.Decode(&whole) == nil {
			return whole
		}
	case "!!float":
		var number float64
		if n.Decode(&number) == nil && !math.IsNaN(number) && !math.IsInf(number, 0) {
			return number
		}
	default: // texts, and what JSON has as texts: times
		return n.Value
	}
	r.problem(n, "%s is no number that JSON can have", n.Value)
	return nil
}
