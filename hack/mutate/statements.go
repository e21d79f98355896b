package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// isListed reports whether a statement is in a list of statements, so that it can be removed.
func isListed(statement ast.Stmt, stack []ast.Node) bool {
	switch above := stack[len(stack)-1].(type) {
	case *ast.BlockStmt:
		return true
	case *ast.CaseClause:
		return statement.Pos() > above.Colon
	case *ast.CommClause:
		return statement.Pos() > above.Colon
	}
	return false
}

// mutateStatement removes a statement that sets something or calls something. The removal of
// a guard clause is the mutant of its condition that is always false, except if the clause
// begins with a statement of its own.
func (g *generator) mutateStatement(statement ast.Stmt) {
	switch s := statement.(type) {
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE || isBlank(s) {
			return
		}
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok || g.isPanic(call) || g.isLog(call) {
			return
		}
	case *ast.IfStmt:
		if s.Init == nil || s.Else != nil {
			return
		}
	case *ast.IncDecStmt, *ast.DeferStmt:
	default:
		return
	}
	g.wrap(statement, "if !"+isActive(g.add(statement, g.summaryOf(statement)+" → removed"))+" { ", " }")
}

// summaryOf returns the text of a statement up to its first block.
func (g *generator) summaryOf(statement ast.Stmt) string {
	text := g.file.textOf(statement)
	if head, _, block := strings.Cut(text, " { "); block {
		return head + " {…}"
	}
	return text
}

// isBlank reports whether an assignment stores nothing.
func isBlank(s *ast.AssignStmt) bool {
	for _, left := range s.Lhs {
		if name, ok := left.(*ast.Ident); !ok || name.Name != "_" {
			return false
		}
	}
	return true
}

func (g *generator) isPanic(call *ast.CallExpr) bool {
	name, ok := call.Fun.(*ast.Ident)
	return ok && g.info.Uses[name] == types.Universe.Lookup("panic")
}

// isLog reports whether a call writes a line to the log, which tests need not expect.
func (g *generator) isLog(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	receiver, ok := types.Unalias(g.info.TypeOf(method.X)).(*types.Named)
	return ok && receiver.Obj().Name() == "Logger"
}

// tag is the variable for the value of a switch in instrumented sources.
const tag = "mutate_tag"

// mutateCases removes the cases of a switch with a value. Those of a switch without one are
// conditions. The instrumented switch compares in its cases:
//
//	switch value {        switch tag := value; {
//	case a, b:       →    case !isActive(17) && (tag == (a) || tag == (b)):
func (g *generator) mutateCases(s *ast.SwitchStmt) {
	if s.Tag == nil || s.Init != nil || !hasCases(s) {
		return
	}
	g.wrap(s.Tag, tag+" := ", ";")
	for _, statement := range s.Body.List {
		clause, ok := statement.(*ast.CaseClause)
		if !ok || clause.List == nil {
			continue
		}
		n := g.add(clause, g.file.text[g.file.offset(clause.Pos()):g.file.offset(clause.Colon)]+" → removed")
		last := len(clause.List) - 1
		g.file.wrap(clause.List[0].Pos(), clause.List[last].End(), "!"+isActive(n)+" && (", ")")
		for i, value := range clause.List {
			g.wrap(value, tag+" == (", ")")
			if i < last {
				end := value.End()
				comma := end + token.Pos(strings.IndexByte(g.file.text[g.file.offset(end):], ','))
				g.file.replace(comma, comma+1, " ||")
			}
		}
	}
}

func hasCases(s *ast.SwitchStmt) bool {
	for _, statement := range s.Body.List {
		if clause, ok := statement.(*ast.CaseClause); ok && clause.List != nil {
			return true
		}
	}
	return false
}
