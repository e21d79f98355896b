package main

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/kopf-go/kopf/hack/source"
)

// functions counts the functions and methods of the library. Generated files, init, and
// main do not count.
type functions struct {
	// unexported are the functions and methods with unexported names; once are those of
	// them that one place uses, and short those of these with at most shortFunction lines,
	// from func to the closing brace. A method that an interface requires is used in more
	// places than its name shows, so it can count as once.
	unexported, once, short int
	// median and maximum are lengths in lines.
	median, maximum int
	longest         string
}

const shortFunction = 12

func functionsOf(tree *source.Tree, library []*source.Package) functions {
	uses := map[types.Object]int{}
	for _, pkg := range library {
		for _, used := range pkg.Info.Uses {
			if function, ok := used.(*types.Func); ok {
				uses[function.Origin()]++
			}
		}
	}
	var found functions
	var lengths []int
	for _, pkg := range library {
		for _, declared := range declaredFunctions(pkg) {
			length := tree.Fset.Position(declared.End()).Line - tree.Fset.Position(declared.Pos()).Line + 1
			lengths = append(lengths, length)
			if length > found.maximum {
				found.maximum, found.longest = length, tree.File(declared.Pos())+": "+declared.Name.Name
			}
			if declared.Name.IsExported() {
				continue
			}
			found.unexported++
			if uses[pkg.Info.Defs[declared.Name]] != 1 {
				continue
			}
			found.once++
			if length <= shortFunction {
				found.short++
			}
		}
	}
	slices.Sort(lengths)
	if len(lengths) > 0 {
		found.median = lengths[len(lengths)/2]
	}
	return found
}

// declaredFunctions returns the functions and methods of the package.
func declaredFunctions(pkg *source.Package) []*ast.FuncDecl {
	var found []*ast.FuncDecl
	for _, file := range pkg.Files {
		if ast.IsGenerated(file) {
			continue
		}
		for _, declared := range file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if ok && function.Name.Name != "init" && function.Name.Name != "main" {
				found = append(found, function)
			}
		}
	}
	return found
}

// statements counts statements of the library that do more than one thing.
type statements struct {
	// clauses are init clauses of if and switch that are a call, or assign to variables
	// that exist already. An init clause that declares variables is ordinary Go.
	clauses int
	// parallel are assignments and definitions of several variables by several values.
	parallel int
}

func statementsOf(library []*source.Package) statements {
	var found statements
	count := func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt:
			found.clauses += clause(node.Init)
		case *ast.SwitchStmt:
			found.clauses += clause(node.Init)
		case *ast.TypeSwitchStmt:
			found.clauses += clause(node.Init)
		case *ast.AssignStmt:
			if len(node.Rhs) > 1 {
				found.parallel++
			}
		}
		return true
	}
	for _, pkg := range library {
		for _, file := range pkg.Files {
			if !ast.IsGenerated(file) {
				ast.Inspect(file, count)
			}
		}
	}
	return found
}

func clause(init ast.Stmt) int {
	switch init := init.(type) {
	case nil:
		return 0
	case *ast.AssignStmt:
		if init.Tok.String() == ":=" {
			return 0
		}
	}
	return 1
}
