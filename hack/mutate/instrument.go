package main

import (
	"cmp"
	"encoding/json"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// edit inserts a text at a place of the source, or replaces a part of it. The lines of the
// source stay the same, so that failures name the right ones.
type edit struct {
	offset, end int // end is the offset, unless the text replaces something
	text        string
	// rank sorts edits at one place: first the ends of inner and outer nodes, then the
	// beginnings of outer and inner ones.
	rank int
}

// wrap inserts texts around a part of the source. Wrap outer parts first.
func (f *sourceFile) wrap(from, to token.Pos, before, after string) {
	rank := len(f.edits) + 1
	f.edits = append(f.edits,
		edit{offset: f.offset(from), end: f.offset(from), text: before, rank: rank},
		edit{offset: f.offset(to), end: f.offset(to), text: after, rank: -rank})
}

// replace replaces a part of the source.
func (f *sourceFile) replace(from, to token.Pos, text string) {
	f.edits = append(f.edits, edit{offset: f.offset(from), end: f.offset(to), text: text, rank: len(f.edits) + 1})
}

// instrumented returns the source with all its mutants.
func (f *sourceFile) instrumented() string {
	slices.SortFunc(f.edits, func(a, b edit) int { return cmp.Or(a.offset-b.offset, a.rank-b.rank) })
	var text strings.Builder
	done := 0
	for _, e := range f.edits {
		text.WriteString(f.text[done:e.offset])
		text.WriteString(e.text)
		done = e.end
	}
	text.WriteString(f.text[done:])
	return text.String()
}

// writeOverlay writes the instrumented sources into a directory, and returns the file for the
// flag -overlay of the go command.
func writeOverlay(root, dir string, files []*sourceFile) (string, error) {
	replaced := map[string]string{}
	for i, f := range files {
		if len(f.mutants) == 0 {
			continue
		}
		name := filepath.Join(dir, strconv.Itoa(i)+".go")
		if err := os.WriteFile(name, []byte(f.instrumented()), 0o600); err != nil {
			return "", err
		}
		replaced[filepath.Join(root, filepath.FromSlash(f.name))] = name
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}
