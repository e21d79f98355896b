package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"github.com/kopf-go/kopf/hack/source"
)

// mutant is one change of the source.
type mutant struct {
	number       int    // in the instrumented build
	file         string // below the checkout
	line, column int
	id           identity
}

// identity names a mutant so that it is the same after changes elsewhere in its file.
type identity struct {
	file     string
	function string // Session.commit
	source   string // the line
	change   string // u.Cycle != nil → true
	ordinal  int    // from 1; it counts mutants that are otherwise equal
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", m.file, m.line, m.column, m.id.function, m.id.change)
}

// sourceFile is a file with its mutants.
type sourceFile struct {
	name string // below the checkout
	pkg  *source.Package
	text string
	// base is the position of the text in the file set.
	base    token.Pos
	edits   []edit
	mutants []*mutant
}

// offset returns the place of a position in the text.
func (f *sourceFile) offset(pos token.Pos) int { return int(pos - f.base) }

// textOf returns the text of a node on one line.
func (f *sourceFile) textOf(node ast.Node) string {
	return strings.Join(strings.Fields(f.text[f.offset(node.Pos()):f.offset(node.End())]), " ")
}

// lineAt returns the line of the text at an offset, without its indentation.
func (f *sourceFile) lineAt(offset int) string {
	begin := strings.LastIndexByte(f.text[:offset], '\n') + 1
	line, _, _ := strings.Cut(f.text[begin:], "\n")
	return strings.TrimSpace(line)
}

// findMutants returns the files of the tree that are wanted, with all their mutants, numbered
// from 1.
func findMutants(tree *source.Tree, isWanted func(file string) bool) ([]*sourceFile, error) {
	var files []*sourceFile
	next := 1
	for _, pkg := range tree.Packages {
		for _, parsed := range pkg.Files {
			name := tree.File(parsed.Package)
			if !isWanted(name) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(tree.Dir, filepath.FromSlash(name)))
			if err != nil {
				return nil, err
			}
			f := &sourceFile{name: name, pkg: pkg, text: string(text), base: parsed.FileStart}
			g := generator{tree: tree, file: f, info: pkg.Info, next: &next, seen: map[identity]int{}}
			g.generate(parsed)
			files = append(files, f)
		}
	}
	return files, nil
}

// mutantsOf returns the mutants of all files.
func mutantsOf(files []*sourceFile) []*mutant {
	var all []*mutant
	for _, f := range files {
		all = append(all, f.mutants...)
	}
	return all
}
