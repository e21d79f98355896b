package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/kopf-go/kopf/hack/source"
)

// house holds all measurements of a checkout.
type house struct {
	sizes     sizes
	receivers []receiver
	names     names
	folders   drawing
	layers    []string
	engine    drawing
	functions functions
	documents share
	// homeless are the engine's files that have no room.
	homeless []string
	// undocumented are the exported names without a comment.
	undocumented []string
}

// share is a part of a whole.
type share struct{ part, of int }

func (s share) percent() float64 {
	if s.of == 0 {
		return 0
	}
	return 100 * float64(s.part) / float64(s.of)
}

func measure(ctx context.Context, dir string) (*house, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	found := &house{}
	if found.sizes, err = measureSizes(dir); err != nil {
		return nil, err
	}
	tree, err := source.Load(ctx, dir, "./...")
	if err != nil {
		return nil, err
	}
	if found.layers, err = againstLayers(tree); err != nil {
		return nil, err
	}
	library := libraryOf(tree)
	found.receivers = receiversOf(tree, library)
	found.names = namesOf(library)
	found.folders = drawFolders(tree, library)
	found.engine, found.homeless = drawEngine(tree), homeless(tree)
	found.functions = functionsOf(tree, library)
	found.documents, found.undocumented = documented(library)
	return found, nil
}

// libraryOf returns the packages of the library: everything under pkg and internal.
func libraryOf(tree *source.Tree) []*source.Package {
	var found []*source.Package
	for _, pkg := range tree.Packages {
		if (strings.HasPrefix(pkg.Path, "pkg/") || strings.HasPrefix(pkg.Path, "internal/")) && !strings.Contains(pkg.Path, "/testdata/") {
			found = append(found, pkg)
		}
	}
	return found
}
