package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kopf-go/kopf/hack/source"
)

// drawFolders draws the folders right under pkg. Each pair of folders has at most one
// arrow in each direction, however many packages import each other.
func drawFolders(tree *source.Tree, library []*source.Package) drawing {
	arrows := map[arrow]int{}
	for _, pkg := range library {
		for _, imported := range pkg.Types.Imports() {
			below, ours := tree.Below(imported.Path())
			from, to := folderOf(pkg.Path), folderOf(below)
			if ours && from != to && to != "" {
				arrows[arrow{from, to}] = 1
			}
		}
	}
	return draw(arrows)
}

// folderOf returns the name of the folder right under pkg; it is empty for a package
// elsewhere.
func folderOf(path string) string {
	below, found := strings.CutPrefix(path, "pkg/")
	if !found {
		return ""
	}
	folder, _, _ := strings.Cut(below, "/")
	return folder
}

// layersFile is where a checkout lists its layers, from top to bottom.
const layersFile = "test/arch/layers_test.go"

// againstLayers returns the imports that run upward, or sideways, in the layers that
// the checkout's own test/arch lists. The place of a package is the longest folder
// that holds it; a package without a place is a matter of test/arch.
func againstLayers(tree *source.Tree) ([]string, error) {
	heights, err := layersOf(tree.Dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, pkg := range tree.Packages {
		from, height := locate(heights, pkg.Path)
		for _, imported := range pkg.Types.Imports() {
			below, ours := tree.Below(imported.Path())
			if to, lower := locate(heights, below); ours && from != "" && to != "" && from != to && height >= lower {
				found = append(found, pkg.Path+" → "+below)
			}
		}
	}
	return found, nil
}

// layersOf reads the layers: the folders, with the number of layers above theirs.
func layersOf(dir string) (map[string]int, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, filepath.FromSlash(layersFile)), nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	heights, height := map[string]int{}, 0
	ast.Inspect(file, func(node ast.Node) bool {
		field, ok := node.(*ast.KeyValueExpr)
		if !ok || fmt.Sprint(field.Key) != "folders" {
			return true
		}
		ast.Inspect(field.Value, func(node ast.Node) bool {
			if text, ok := node.(*ast.BasicLit); ok {
				folder, _ := strconv.Unquote(text.Value)
				heights[strings.TrimSuffix(folder, "/...")] = height
			}
			return true
		})
		height++
		return false
	})
	if height == 0 {
		return nil, fmt.Errorf("%s lists no layers", layersFile)
	}
	return heights, nil
}

// locate returns the folder that holds the package, and its height.
func locate(heights map[string]int, path string) (folder string, height int) {
	for candidate, at := range heights {
		if (path == candidate || strings.HasPrefix(path, candidate+"/")) && len(candidate) > len(folder) {
			folder, height = candidate, at
		}
	}
	return folder, height
}
