package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
)

// declaration is what a listing declares for the listings after it.
type declaration struct {
	name    string // of methods: the name of their type
	method  bool
	text    string
	imports map[string]string
}

// declarationsOf returns the declarations of a listing that others can use.
func declarationsOf(one fragment) []declaration {
	if one.complete {
		return nil
	}
	const header = "package listing\n"
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", header+one.declarations, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	own := map[string]string{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		own[nameOf(spec, path)] = path
	}
	var found []declaration
	for _, declared := range file.Decls {
		from, to := files.Position(declared.Pos()).Offset-len(header), files.Position(declared.End()).Offset-len(header)
		for _, name := range namesIn(declared) {
			name.text, name.imports = one.declarations[from:to], own
			found = append(found, name)
		}
	}
	return found
}

// namesIn returns the names of a declaration. All names of a group have the text of the
// group.
func namesIn(declared ast.Decl) []declaration {
	switch declared := declared.(type) {
	case *ast.FuncDecl:
		return []declaration{{name: receiver(declared), method: declared.Recv != nil}}
	case *ast.GenDecl:
		var names []declaration
		for _, spec := range declared.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, declaration{name: spec.Name.Name})
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, declaration{name: name.Name})
				}
			}
		}
		return names
	}
	return nil
}

// receiver returns the name of the type of a method, or else that of the function.
func receiver(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	kind := function.Recv.List[0].Type
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	name, _ := kind.(*ast.Ident)
	return name.Name
}

// remaining returns the earlier declarations that no later one replaces, and nothing
// twice. The functions main and init are of no use to others.
func remaining(before, own []declaration) []declaration {
	taken := map[string]bool{"main": true, "init": true, "_": true}
	for _, declared := range own {
		taken[declared.name] = true
	}
	var found []declaration
	for _, declared := range slices.Backward(before) {
		repeated := slices.ContainsFunc(found, func(other declaration) bool { return other.text == declared.text })
		if !taken[declared.name] && !repeated {
			found = append(found, complete(declared, before))
		}
		if !declared.method {
			taken[declared.name] = true
		}
	}
	return found
}

// complete adds the imports that the text of a declaration needs.
func complete(declared declaration, before []declaration) declaration {
	declared.imports = importsFor(fragment{declarations: declared.text}, before)
	return declared
}
