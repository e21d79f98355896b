package docs

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/hack/source"
)

func TestListingsCompile(t *testing.T) {
	check := newCompiler(t)
	all, listings := pages(t), 0
	for _, page := range slices.Sorted(maps.Keys(all)) {
		for _, mistake := range check.page(blocksOf(page, all[page])) {
			t.Error(mistake)
		}
		listings += strings.Count(all[page], "```go\n")
	}
	if listings < 50 {
		t.Errorf("found only %d listings", listings)
	}
}

// compiler checks listings in memory: nothing is built but what they import.
type compiler struct {
	files    *token.FileSet
	importer types.Importer
}

// loadCompiler makes the compiler of all tests: to find the packages takes longer than to
// check the listings.
var loadCompiler = sync.OnceValues(func() (*compiler, error) {
	dir, err := assets.Root()
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	importer, err := source.NewImporter(context.Background(), dir, files, slices.Compact(slices.Sorted(maps.Values(known)))...)
	return &compiler{files: files, importer: importer}, err
})

func newCompiler(t *testing.T) *compiler {
	t.Helper()
	found, err := loadCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// page returns the mistakes in the listings of one page.
func (c *compiler) page(blocks []block) []string {
	var mistakes []string
	var before []declaration
	for _, one := range blocks {
		if one.language != "go" {
			continue
		}
		fragment, err := parse(one)
		if err != nil {
			mistakes = append(mistakes, fmt.Sprintf("%s:%d: this is neither declarations nor statements: %v", one.page, one.line, err))
			continue
		}
		for _, err := range c.check(fragment, before) {
			mistakes = append(mistakes, fmt.Sprintf("%s: %s", c.files.Position(err.Pos), err.Msg))
		}
		before = append(before, declarationsOf(fragment)...)
	}
	return mistakes
}

// check returns the mistakes within a listing, which may use earlier declarations.
func (c *compiler) check(one fragment, before []declaration) []types.Error {
	if one.complete {
		before = nil
	}
	others := remaining(before, declarationsOf(one))
	own := c.parse(one.page, one.line, one.declarations, one.statements, importsFor(one, before))
	files := []*ast.File{own}
	for _, earlier := range others {
		files = append(files, c.parse("earlier", 1, earlier.text, "", earlier.imports))
	}
	var found []types.Error
	config := types.Config{Importer: c.importer, Error: func(err error) {
		var mistake types.Error
		if errors.As(err, &mistake) && c.counts(one, mistake) {
			found = append(found, mistake)
		}
	}}
	_, _ = config.Check("listing", c.files, files, nil) // the function gets the errors
	return found
}

// counts reports whether the mistake is one of the listing. Statements need not use their
// variables, and a comment need not use its imports.
func (c *compiler) counts(one fragment, mistake types.Error) bool {
	at := c.files.Position(mistake.Pos)
	if at.Filename != one.page || at.Line < one.line || at.Line >= one.line+strings.Count(one.text, "\n") {
		return false
	}
	return !mistake.Soft || !one.hidden && strings.TrimSpace(one.statements) == ""
}

func (c *compiler) parse(page string, line int, declarations, statements string, imports map[string]string) *ast.File {
	file, _ := parser.ParseFile(c.files, "", render(imports, page, line, declarations, statements), parser.SkipObjectResolution) // has been parsed before
	return file
}

// importsFor returns the packages that a listing uses without an import: those of
// comments on the page, and well-known ones.
func importsFor(one fragment, before []declaration) map[string]string {
	if one.complete {
		return nil
	}
	declared := map[string]bool{}
	available := maps.Clone(known)
	for _, earlier := range slices.Concat(before, declarationsOf(one)) {
		declared[earlier.name] = true
		maps.Copy(available, earlier.imports)
	}
	file, _ := syntax(one.declarations, one.statements)
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		declared[nameOf(spec, path)] = true
	}
	used := map[string]string{"context": known["context"]}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok && available[name.Name] != "" && !declared[name.Name] {
				used[name.Name] = available[name.Name]
			}
		}
		return true
	})
	return used
}

func nameOf(spec *ast.ImportSpec, path string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path[strings.LastIndex(path, "/")+1:]
}
