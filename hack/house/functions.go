package main

import (
	"go/ast"
	"slices"

	"github.com/kopf-go/kopf/hack/source"
)

// functions are the lengths of the library's functions and methods, in lines from
// func to the closing brace.
type functions struct {
	median, maximum int
	longest         string
}

func functionsOf(tree *source.Tree, library []*source.Package) functions {
	var found functions
	var lengths []int
	for _, pkg := range library {
		for _, declared := range declaredFunctions(pkg) {
			length := tree.Fset.Position(declared.End()).Line - tree.Fset.Position(declared.Pos()).Line + 1
			lengths = append(lengths, length)
			if length > found.maximum {
				found.maximum, found.longest = length, tree.File(declared.Pos())+": "+declared.Name.Name
			}
		}
	}
	slices.Sort(lengths)
	if len(lengths) > 0 {
		found.median = lengths[len(lengths)/2]
	}
	return found
}

// documented counts the exported names of the library that have a comment: types,
// functions, methods of exported types, and each constant and variable, for which a
// comment on its group is enough. It returns the others as well.
func documented(library []*source.Package) (found share, without []string) {
	count := func(pkg *source.Package, name *ast.Ident, comments ...*ast.CommentGroup) {
		if !name.IsExported() {
			return
		}
		found.of++
		if slices.ContainsFunc(comments, func(comment *ast.CommentGroup) bool { return comment != nil }) {
			found.part++
		} else {
			without = append(without, pkg.Path+"."+name.Name)
		}
	}
	for _, pkg := range library {
		for _, declared := range declaredFunctions(pkg) {
			if owner := receiverOf(pkg, declared); owner == nil || owner.Exported() {
				count(pkg, declared.Name, declared.Doc)
			}
		}
		for _, file := range pkg.Files {
			for _, declared := range file.Decls {
				group, ok := declared.(*ast.GenDecl)
				if !ok || ast.IsGenerated(file) {
					continue
				}
				for _, spec := range group.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						count(pkg, spec.Name, spec.Doc, group.Doc, spec.Comment)
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							count(pkg, name, spec.Doc, group.Doc, spec.Comment)
						}
					}
				}
			}
		}
	}
	return found, without
}
