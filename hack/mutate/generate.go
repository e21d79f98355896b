package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"github.com/kopf-go/kopf/hack/source"
)

// generator finds the mutants of one file.
type generator struct {
	tree *source.Tree
	file *sourceFile
	info *types.Info
	next *int // the number of the next mutant in all files
	seen map[identity]int
	// function is the declaration that the generator is in.
	function string
}

// alias is the name of the package active in instrumented sources.
const alias = "mutate_active"

// activePackage is its path below the module.
const activePackage = "hack/mutate/active"

// generate finds the mutants of all functions, and instruments the file with them.
func (g *generator) generate(parsed *ast.File) {
	importing := fmt.Sprintf("; import %s %q", alias, g.tree.Module+"/"+activePackage)
	g.file.replace(parsed.Name.End(), parsed.Name.End(), importing)
	for _, declared := range parsed.Decls {
		if function, ok := declared.(*ast.FuncDecl); ok && function.Body != nil {
			g.function = nameOf(function)
			ast.PreorderStack(function, nil, g.visit)
		}
	}
}

// nameOf returns the name of a function, with its receiver.
func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + function.Name.Name
	}
	return function.Name.Name
}

// visit adds the mutants of one node. The stack contains the nodes around it.
func (g *generator) visit(node ast.Node, stack []ast.Node) bool {
	switch node := node.(type) {
	case *ast.ReturnStmt:
		g.mutateErrors(node, stack)
	case *ast.SwitchStmt:
		g.mutateCases(node)
	case ast.Stmt:
		if isListed(node, stack) {
			g.mutateStatement(node)
		}
	case ast.Expr:
		g.mutateCondition(node, stack)
	}
	return true
}

// add adds a mutant at a node, and returns its number.
func (g *generator) add(node ast.Node, change string) int {
	position := g.tree.Fset.Position(node.Pos())
	id := identity{file: g.file.name, function: g.function, source: g.file.lineAt(g.file.offset(node.Pos())), change: change}
	g.seen[id]++
	id.ordinal = g.seen[id]
	m := &mutant{number: *g.next, file: g.file.name, line: position.Line, column: position.Column, id: id}
	*g.next++
	g.file.mutants = append(g.file.mutants, m)
	return m.number
}

// wrap inserts texts around a node.
func (g *generator) wrap(node ast.Node, before, after string) {
	g.file.wrap(node.Pos(), node.End(), before, after)
}

// isActive returns the condition that a mutant is active.
func isActive(number int) string { return fmt.Sprintf("%s.Is(%d)", alias, number) }

// mutateErrors turns the errors that a function returns: an error becomes nil, and nil an
// error.
func (g *generator) mutateErrors(node *ast.ReturnStmt, stack []ast.Node) {
	results := g.resultsAround(stack)
	if results == nil || results.Len() != len(node.Results) {
		return
	}
	for i, result := range node.Results {
		if !types.Identical(results.At(i).Type(), types.Universe.Lookup("error").Type()) {
			continue
		}
		text := g.file.textOf(result)
		if g.info.Types[result].IsNil() {
			n := g.add(result, "return nil → an error")
			g.file.replace(result.Pos(), result.End(), fmt.Sprintf("%s.NoError(%d)", alias, n))
		} else {
			n := g.add(result, "return "+text+" → nil")
			g.wrap(result, fmt.Sprintf("%s.Error(%d, ", alias, n), ")")
		}
	}
}

// resultsAround returns the result types of the innermost function.
func (g *generator) resultsAround(stack []ast.Node) *types.Tuple {
	for i := len(stack) - 1; i >= 0; i-- {
		switch function := stack[i].(type) {
		case *ast.FuncLit:
			if signature, ok := g.info.TypeOf(function).(*types.Signature); ok {
				return signature.Results()
			}
		case *ast.FuncDecl:
			if signature, ok := g.info.Defs[function.Name].Type().(*types.Signature); ok {
				return signature.Results()
			}
		}
	}
	return nil
}

// isOperator reports whether an expression is a binary one with one of the operators.
func isOperator(e ast.Expr, operators ...token.Token) bool {
	binary, ok := e.(*ast.BinaryExpr)
	if !ok {
		return false
	}
	for _, operator := range operators {
		if binary.Op == operator {
			return true
		}
	}
	return false
}
