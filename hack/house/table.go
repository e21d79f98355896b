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

// details lists the entries that the table only counts, and those that the limits apply to.
func details(h *house) string {
	var text strings.Builder
	section := func(title string, entries []string) {
		fmt.Fprintf(&text, "\n%s:\n", title)
		for _, entry := range entries {
			fmt.Fprintf(&text, "  %s\n", entry)
		}
	}
	section("Largest receivers", texts(h.receivers[:min(10, len(h.receivers))]))
	section("Largest packages", texts(h.sizes.packages[:min(10, len(h.sizes.packages))]))
	section("Longest files", texts(h.sizes.longest[:min(10, len(h.sizes.longest))]))
	section("Names with more than one meaning within a package", texts(h.names.ambiguous))
	section("Imports against the layers", h.layers)
	section("Folders, from top to bottom", h.folders.order)
	section("Arrows back up between them", texts(h.folders.upward))
	section("The engine's rooms, from top to bottom", h.engine.order)
	section("Arrows back up between them", texts(h.engine.upward))
	section("Files of the engine without a room", h.homeless)
	section("Exported names without a comment", h.undocumented)
	return text.String()
}

// shown is the number of entries in rows that list the largest ones.
const shown = 3

func rows(h *house) []row {
	return []row{
		{"Production code: lines, files, packages", h.sizes.production.String()},
		{"Tests: lines, files, packages", h.sizes.tests.String()},
		{"Examples and tools: lines, files, packages", h.sizes.others.String()},
		{"Largest receivers: methods in files (+ promoted by embedding)", list(h.receivers)},
		{"Largest packages: files", list(h.sizes.packages)},
		{"Longest files: lines", list(h.sizes.longest)},
		{"Functions: lines in the median, at most", fmt.Sprintf("%d, %d (%s)", h.functions.median, h.functions.maximum, h.functions.longest)},
		{"Unexported functions whose name has more than one meaning within the package", h.names.within.String()},
		{"The same, with the implementations of interfaces", h.names.declared.String()},
		{"Unexported functions whose name has more than one meaning in all packages", h.names.overall.String()},
		{"Imports against the layers", fmt.Sprint(len(h.layers))},
		{"Arrows back up between the folders under pkg", h.folders.String()},
		{"Arrows back up between the engine's rooms", h.engine.String()},
		{"Exported names with a comment", h.documents.String()},
	}
}

func (s size) String() string { return fmt.Sprintf("%d, %d, %d", s.lines, s.files, s.packages) }

func (s share) String() string { return fmt.Sprintf("%.1f %% (%d of %d)", s.percent(), s.part, s.of) }

func (d drawing) String() string { return fmt.Sprintf("%d of %d", d.back, d.arrows) }

func (c counted) String() string { return fmt.Sprintf("%s %d", c.name, c.count) }

func (r receiver) String() string {
	text := fmt.Sprintf("%s %d in %d", r.name, r.methods, r.files)
	if r.promoted > 0 {
		text += fmt.Sprintf(" (+%d)", r.promoted)
	}
	return text
}

// list returns the first entries.
func list[T fmt.Stringer](all []T) string {
	return strings.Join(texts(all[:min(shown, len(all))]), "<br>")
}

func texts[T fmt.Stringer](all []T) []string {
	var found []string
	for _, one := range all {
		found = append(found, one.String())
	}
	return found
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
