package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// role says which mutants of a condition differ from those of the conditions around it.
type role int

const (
	// none is no condition, or one whose mutants are those of the node around it.
	none role = iota
	// whole becomes true and false.
	whole
	// andSide becomes true: if a side of && is false, the whole is.
	andSide
	// orSide becomes false: if a side of || is true, the whole is.
	orSide
	// literal becomes the other one.
	literal
)

// mutateCondition adds the mutants of an expression if it is a condition: it becomes true or
// false, the opposite, and a comparison includes or excludes equality.
func (g *generator) mutateCondition(e ast.Expr, stack []ast.Node) {
	role := g.roleOf(e, stack)
	if role == none {
		return
	}
	text := g.file.textOf(e)
	if role == literal {
		n := g.add(e, map[string]string{"true": "true → false", "false": "false → true"}[text])
		g.wrap(e, "("+isActive(n)+" != ", ")")
		return
	}
	var before string
	if role != orSide {
		before += isActive(g.add(e, text+" → true")) + " || "
	}
	if role != andSide {
		before += "!" + isActive(g.add(e, text+" → false")) + " && "
	}
	if isOperator(e, token.LAND, token.LOR) {
		g.wrap(e, "("+before+"(", "))")
		return
	}
	n := g.add(e, text+" → "+g.oppositeOf(e))
	g.wrap(e, "("+before+"("+isActive(n)+" != (", ")))")
	g.mutateBoundary(e)
}

// roleOf returns the role of an expression. Parentheses count as what is in them.
func (g *generator) roleOf(e ast.Expr, stack []ast.Node) role {
	above := stack[len(stack)-1]
	if _, ok := e.(*ast.ParenExpr); ok || !g.isBool(e) {
		return none
	}
	for _, ok := above.(*ast.ParenExpr); ok; _, ok = above.(*ast.ParenExpr) {
		stack = stack[:len(stack)-1]
		above = stack[len(stack)-1]
	}
	if g.info.Types[e].Value != nil { // a constant
		return roleOfConstant(e, above)
	}
	switch above := above.(type) {
	case *ast.IfStmt, *ast.ForStmt:
		return whole
	case *ast.BinaryExpr:
		switch above.Op {
		case token.LAND:
			return andSide
		case token.LOR:
			return orSide
		}
	case *ast.CaseClause:
		if around, ok := stack[len(stack)-3].(*ast.SwitchStmt); ok && around.Tag == nil {
			return whole
		}
	case *ast.ReturnStmt:
		return whole
	case *ast.AssignStmt, *ast.KeyValueExpr, *ast.CallExpr, *ast.ValueSpec:
		if isLogical(e) {
			return whole
		}
	}
	return none
}

// roleOfConstant returns the role of a constant: only true and false are mutated, where they
// are returned or stored.
func roleOfConstant(e ast.Expr, above ast.Node) role {
	name, ok := e.(*ast.Ident)
	if !ok || name.Name != "true" && name.Name != "false" {
		return none
	}
	switch above.(type) {
	case *ast.ReturnStmt, *ast.AssignStmt, *ast.KeyValueExpr:
		return literal
	}
	return none
}

// isBool reports whether an expression is a value of the type bool.
func (g *generator) isBool(e ast.Expr) bool {
	value := g.info.Types[e]
	basic, ok := value.Type.(*types.Basic)
	return ok && value.IsValue() && (basic.Kind() == types.Bool || basic.Kind() == types.UntypedBool)
}

// isLogical reports whether an expression computes a condition, in contrast to a variable or a
// call, whose conditions are elsewhere.
func isLogical(e ast.Expr) bool {
	negation, ok := e.(*ast.UnaryExpr)
	return ok && negation.Op == token.NOT || isOperator(e, token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ)
}

// oppositeOf returns the text of the opposite of a condition.
func (g *generator) oppositeOf(e ast.Expr) string {
	text := g.file.textOf(e)
	if rest, negated := strings.CutPrefix(text, "!"); negated {
		return rest
	}
	opposites := map[token.Token]string{
		token.EQL: "!=", token.NEQ: "==", token.LSS: ">=", token.GEQ: "<", token.GTR: "<=", token.LEQ: ">",
	}
	if binary, ok := e.(*ast.BinaryExpr); ok {
		return g.file.textOf(binary.X) + " " + opposites[binary.Op] + " " + g.file.textOf(binary.Y)
	}
	return "!" + text
}

// boundaries contains the comparisons whose mutants include or exclude equality, and the
// functions of the package active that stand for them.
var boundaries = map[token.Token]struct{ mutated, function string }{
	token.LSS: {"<=", "Less"},
	token.LEQ: {"<", "LessOrEqual"},
	token.GTR: {">=", "Greater"},
	token.GEQ: {">", "GreaterOrEqual"},
}

// mutateBoundary adds the mutant of an ordered comparison.
func (g *generator) mutateBoundary(e ast.Expr) {
	comparison, ok := e.(*ast.BinaryExpr)
	if !ok || boundaries[comparison.Op].function == "" {
		return
	}
	b := boundaries[comparison.Op]
	n := g.add(e, g.file.textOf(e)+" → "+g.file.textOf(comparison.X)+" "+b.mutated+" "+g.file.textOf(comparison.Y))
	g.wrap(e, fmt.Sprintf("%s.%s(%d, ", alias, b.function, n), ")")
	g.file.replace(comparison.OpPos, comparison.OpPos+token.Pos(len(comparison.Op.String())), ",")
}
