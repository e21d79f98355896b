package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/kopf-go/kopf/hack/source"
)

// house holds all measurements of a checkout.
type house struct {
	sizes      sizes
	functions  functions
	statements statements
	api        api
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
	library := libraryOf(tree)
	found.functions = functionsOf(tree, library)
	found.statements = statementsOf(library)
	found.api, err = measureAPI(tree)
	return found, err
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
