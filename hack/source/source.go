// Package source loads a checkout of this module as syntax and types, with nothing
// but the go command and the standard library: the packages of the module from their
// sources, everything they import from the compiler's export data.
//
// The checkout may be another one than that of the running program, so that tools
// can compare two states of the module.
package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Package is one package of the module, without its tests.
type Package struct {
	// Path is the import path below the module, such as "pkg/kopf".
	Path  string
	Files []*ast.File
	Types *types.Package
	Info  *types.Info
}

// Tree is the result of Load.
type Tree struct {
	Dir    string
	Module string
	Fset   *token.FileSet
	// Packages are sorted so that a package comes after those it imports.
	Packages []*Package
}

// Load returns the packages of the checkout in dir that match the patterns of the
// go command, and those packages of the module that they import.
func Load(ctx context.Context, dir string, patterns ...string) (*Tree, error) {
	dir, err := absolute(dir)
	if err != nil {
		return nil, err
	}
	listed, err := list(ctx, dir, patterns)
	if err != nil {
		return nil, err
	}
	tree := &Tree{Dir: dir, Fset: token.NewFileSet()}
	imports := newImporter(tree.Fset, listed)
	for _, one := range listed {
		if one.Standard || one.Module == nil || !one.Module.Main {
			continue
		}
		tree.Module = one.Module.Path
		pkg, err := check(tree, one, imports)
		if err != nil {
			return nil, err
		}
		imports.checked[one.ImportPath] = pkg.Types
		tree.Packages = append(tree.Packages, pkg)
	}
	return tree, nil
}

// NewImporter returns an importer of the packages that match the patterns in the
// checkout in dir, and of what they import, all from export data.
func NewImporter(ctx context.Context, dir string, fset *token.FileSet, patterns ...string) (types.Importer, error) {
	listed, err := list(ctx, dir, patterns)
	if err != nil {
		return nil, err
	}
	return newImporter(fset, listed), nil
}

// absolute returns the path of a directory as the go command prints it.
func absolute(dir string) (string, error) {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	return filepath.Abs(resolved)
}

// Package returns the package with the path below the module, or nil.
func (t *Tree) Package(path string) *Package {
	for _, pkg := range t.Packages {
		if pkg.Path == path {
			return pkg
		}
	}
	return nil
}

// Below returns the path of a package below the module, and whether the package
// belongs to the module.
func (t *Tree) Below(path string) (string, bool) {
	return strings.CutPrefix(path, t.Module+"/")
}

// File returns the path of the file at the position, below the checkout.
func (t *Tree) File(pos token.Pos) string {
	name := t.Fset.Position(pos).Filename
	if below, err := filepath.Rel(t.Dir, name); err == nil {
		name = below
	}
	return filepath.ToSlash(name)
}

// listing is the output of `go list -json` for a package.
type listing struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Standard                bool
	Module                  *struct {
		Path string
		Main bool
	}
}

func list(ctx context.Context, dir string, patterns []string) ([]listing, error) {
	args := append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,Standard,Module", "--"}, patterns...)
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off")
	output, err := command.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return nil, fmt.Errorf("go list in %s: %w", dir, err)
	}
	var all []listing
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var one listing
		switch err := decoder.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, one)
	}
}

// packages imports the module's packages as they were checked, and others from
// export data, so that a type has one identity in the whole tree.
type packages struct {
	checked map[string]*types.Package
	others  types.Importer
}

func newImporter(fset *token.FileSet, listed []listing) *packages {
	exports := map[string]string{}
	for _, one := range listed {
		exports[one.ImportPath] = one.Export
	}
	lookup := func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	}
	return &packages{checked: map[string]*types.Package{}, others: importer.ForCompiler(fset, "gc", lookup)}
}

func (p *packages) Import(path string) (*types.Package, error) {
	if pkg := p.checked[path]; pkg != nil {
		return pkg, nil
	}
	return p.others.Import(path)
}

// check parses and type-checks one package of the module.
func check(tree *Tree, one listing, imports types.Importer) (*Package, error) {
	pkg := &Package{Path: strings.TrimPrefix(strings.TrimPrefix(one.ImportPath, one.Module.Path), "/")}
	for _, name := range one.GoFiles {
		file, err := parser.ParseFile(tree.Fset, filepath.Join(one.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		pkg.Files = append(pkg.Files, file)
	}
	pkg.Info = &types.Info{
		Defs:       map[*ast.Ident]types.Object{},
		Uses:       map[*ast.Ident]types.Object{},
		Types:      map[ast.Expr]types.TypeAndValue{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	var err error
	config := types.Config{Importer: imports}
	pkg.Types, err = config.Check(one.ImportPath, tree.Fset, pkg.Files, pkg.Info)
	return pkg, err
}
