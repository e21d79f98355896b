package main

import (
	"fmt"
	"io"
	"strings"
)

// row is one figure of a house, as text.
type row struct{ name, value string }

// column is the part of the table about one house. All columns have the same rows.
type column struct {
	title string
	rows  []row
}

func rows(h *house) []row {
	return []row{
		{"Production code: lines, files, packages", h.sizes.production.String()},
		{"Tests: lines, files, packages", h.sizes.tests.String()},
		{"Examples and tools: lines, files, packages", h.sizes.others.String()},
		{"Largest packages: files", list(h.sizes.packages)},
		{"Longest files: lines", list(h.sizes.longest)},
		{"Functions: lines in the median, at most", fmt.Sprintf("%d, %d (%s)", h.functions.median, h.functions.maximum, h.functions.longest)},
		{
			fmt.Sprintf("Unexported functions: all, used once, used once and of at most %d lines", shortFunction),
			fmt.Sprintf("%d, %d, %d", h.functions.unexported, h.functions.once, h.functions.short),
		},
		{"Init clauses that call or assign", fmt.Sprint(h.statements.clauses)},
		{"Parallel assignments", fmt.Sprint(h.statements.parallel)},
		{"Exported names of the facade", fmt.Sprint(h.api.facade)},
		{"Lines of the API record", fmt.Sprint(h.api.recorded)},
	}
}

func (s size) String() string { return fmt.Sprintf("%d, %d, %d", s.lines, s.files, s.packages) }

// list returns the first three entries.
func list(all []counted) string {
	var texts []string
	for _, one := range all[:min(3, len(all))] {
		texts = append(texts, fmt.Sprintf("%s %d", one.name, one.count))
	}
	return strings.Join(texts, "<br>")
}

func write(out io.Writer, columns []column) error {
	titles, lines := "| |", "|---|"
	for _, one := range columns {
		titles += " " + one.title + " |"
		lines += "---|"
	}
	text := titles + "\n" + lines + "\n"
	for i, one := range columns[0].rows {
		text += "| " + one.name + " |"
		for _, column := range columns {
			text += " " + column.rows[i].value + " |"
		}
		text += "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}
