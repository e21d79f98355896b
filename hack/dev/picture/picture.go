// Package picture draws the output of a program as the picture of a terminal, in SVG. The
// README shows one of `make run`, and a test of hack/dev compares it with a real run.
package picture

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The sizes of the picture: a terminal of so many columns, and the pixels of a character.
const (
	columns      = 112
	charWidth    = 8.0
	lineHeight   = 19.0
	margin       = 16.0
	bar          = 30.0 // the title bar
	width        = columns*charWidth + 2*margin
	continuation = "    " // begins the further rows of a line
)

// style says how a part of a line looks; pattern has one group, the part.
type style struct {
	class   string
	pattern *regexp.Regexp
}

// styles are the parts of lines with a color. Of overlapping parts, the first one counts.
var styles = []style{
	{"prompt", regexp.MustCompile(`^(\$ .*)$`)},
	{"dev", regexp.MustCompile(`^(\[dev\])`)},
	{"operator", regexp.MustCompile(`^(\[[\w-]+\])`)},
	{"faint", regexp.MustCompile(`(\{".*)$`)},
	{"faint", regexp.MustCompile(`(\d{4}-\d\d-\d\dT[\d:.]+Z)`)},
	{"good", regexp.MustCompile(`\b(IS HANDLED|succeeded)\b`)},
	{"level", regexp.MustCompile(`\b(INFO|Normal)\b`)},
}

// SVG returns the picture of a text.
func SVG(title, text string) string {
	var rows strings.Builder
	y := bar + lineHeight
	for line := range strings.Lines(text) {
		for _, row := range wrap(strings.TrimRight(line, "\n")) {
			x := margin
			for _, part := range row {
				length := float64(utf8.RuneCountInString(part.text)) * charWidth
				if strings.TrimSpace(part.text) != "" {
					fmt.Fprintf(&rows, "<text x=\"%.0f\" y=\"%.0f\" textLength=\"%.0f\"%s>%s</text>\n", x, y, length, class(part.class), html.EscapeString(part.text))
				}
				x += length
			}
			y += lineHeight
		}
	}
	return fmt.Sprintf(frame, width, y, html.EscapeString(title), rows.String())
}

// frame is the terminal: its width, height, title, and rows. Viewers that have none of the
// fonts keep the columns, because each part of a row has a length.
const frame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]g %[2]g" width="%[1]g" height="%[2]g" role="img" xml:space="preserve">
<title>%[3]s</title>
<style>
text { font: 13.3px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d6dce3; white-space: pre; }
.prompt { fill: #fff; font-weight: bold; } .dev { fill: #7db4f0; } .operator { fill: #e0a8f0; } .faint { fill: #7f8a96; }
.good { fill: #7ee0a0; font-weight: bold; } .level { fill: #8fd0d8; } .title { fill: #97a3b0; text-anchor: middle; }
</style>
<rect width="100%%" height="100%%" rx="8" fill="#161b22"/>
<circle cx="18" cy="16" r="5" fill="#f06b60"/><circle cx="36" cy="16" r="5" fill="#f0bf4c"/><circle cx="54" cy="16" r="5" fill="#5fc454"/>
<text class="title" x="50%%" y="20">%[3]s</text>
%[4]s</svg>
`

func class(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" class=%q", name)
}

// part is a piece of a row in one color.
type part struct{ class, text string }

// wrap divides a line into rows of parts, as a terminal does, but between words. Rows after
// the first one are indented.
func wrap(line string) [][]part {
	classes := classesOf(line)
	letters := []rune(strings.ReplaceAll(line, "\t", " "))
	var rows [][]part
	indent := ""
	for start := 0; start < len(letters) || start == 0; {
		end := rowEnd(letters, start, columns-len(indent))
		row := []part{{"", indent}}
		for i := start; i < end; i++ {
			if last := &row[len(row)-1]; last.class == classes[i] {
				last.text += string(letters[i])
			} else {
				row = append(row, part{classes[i], string(letters[i])})
			}
		}
		rows = append(rows, row)
		start, indent = max(end, start+1), continuation
		for start < len(letters) && letters[start] == ' ' {
			start++
		}
	}
	return rows
}

// rowEnd returns where a row ends that begins at start: after a word, if there is one.
func rowEnd(letters []rune, start, room int) int {
	end := start + room
	if end >= len(letters) {
		return len(letters)
	}
	for i := end; i > start+room/2; i-- {
		if letters[i] == ' ' {
			return i
		}
	}
	return end
}

// classesOf returns the class of each letter of a line.
func classesOf(line string) []string {
	classes := make([]string, utf8.RuneCountInString(line))
	for _, one := range styles {
		for _, at := range one.pattern.FindAllStringSubmatchIndex(line, -1) {
			start := utf8.RuneCountInString(line[:at[2]])
			for i := range utf8.RuneCountInString(line[at[2]:at[3]]) {
				if classes[start+i] == "" {
					classes[start+i] = one.class
				}
			}
		}
	}
	return classes
}
