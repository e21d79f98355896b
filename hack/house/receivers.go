package main

import (
	"cmp"
	"go/ast"
	"go/types"
	"slices"

	"github.com/kopf-go/kopf/hack/source"
)

// receiver is a type of the library with methods. A method does not count when an
// interface of another module requires it: one that is declared in a package which
// the receiver's package imports, has this method, and is implemented by the type as
// a whole; or when it is Error or Unwrap of an error.
type receiver struct {
	name string
	// methods is the number of methods that count, and files the number of their files.
	methods, files int
	// required are the methods that an interface of another module requires.
	required int
	// promoted are the methods that embedded fields add. They do not count.
	promoted int
}

// receiversOf returns the receivers with the most methods first.
func receiversOf(tree *source.Tree, library []*source.Package) []receiver {
	var found []receiver
	for _, pkg := range library {
		outside := interfacesOutside(tree, pkg)
		for named, methods := range methodsOf(pkg) {
			found = append(found, count(tree, pkg, named, methods, outside))
		}
	}
	slices.SortFunc(found, func(a, b receiver) int {
		return cmp.Or(cmp.Compare(b.methods, a.methods), cmp.Compare(a.name, b.name))
	})
	return found
}

// methodsOf returns the methods that the package declares, by the name of their
// receiver.
func methodsOf(pkg *source.Package) map[*types.TypeName][]*ast.FuncDecl {
	found := map[*types.TypeName][]*ast.FuncDecl{}
	for _, declared := range declaredFunctions(pkg) {
		if owner := receiverOf(pkg, declared); owner != nil {
			found[owner] = append(found[owner], declared)
		}
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
			if function, ok := declared.(*ast.FuncDecl); ok {
				found = append(found, function)
			}
		}
	}
	return found
}

// receiverOf returns the type that a method belongs to, or nil for a function.
func receiverOf(pkg *source.Package, declared *ast.FuncDecl) *types.TypeName {
	function, ok := pkg.Info.Defs[declared.Name].(*types.Func)
	if !ok || function.Signature().Recv() == nil {
		return nil
	}
	of := function.Signature().Recv().Type()
	if pointer, ok := of.(*types.Pointer); ok {
		of = pointer.Elem()
	}
	if named, ok := of.(*types.Named); ok {
		return named.Obj()
	}
	return nil
}

func count(tree *source.Tree, pkg *source.Package, named *types.TypeName, methods []*ast.FuncDecl, outside []*types.Interface) receiver {
	found := receiver{name: pkg.Path + "." + named.Name()}
	required := requiredOf(named, outside)
	files, own := map[string]bool{}, map[string]bool{}
	for _, method := range methods {
		own[method.Name.Name] = true
		if required[method.Name.Name] {
			found.required++
			continue
		}
		found.methods++
		files[tree.File(method.Pos())] = true
	}
	found.files = len(files)
	for all, i := types.NewMethodSet(types.NewPointer(named.Type())), 0; i < all.Len(); i++ {
		if !own[all.At(i).Obj().Name()] {
			found.promoted++
		}
	}
	return found
}

// requiredOf returns the names of the methods that the interfaces require of the type.
func requiredOf(named *types.TypeName, outside []*types.Interface) map[string]bool {
	required := map[string]bool{}
	for _, one := range outside {
		if !types.Implements(named.Type(), one) && !types.Implements(types.NewPointer(named.Type()), one) {
			continue
		}
		for method := range one.Methods() {
			required[method.Name()] = true
			required["Unwrap"] = required["Unwrap"] || method.Name() == "Error"
		}
	}
	return required
}

// interfacesOutside returns the interfaces of other modules, and of the standard
// library, that the package can name.
func interfacesOutside(tree *source.Tree, pkg *source.Package) []*types.Interface {
	found := interfaceOf(nil, types.Universe.Lookup("error").Type())
	for _, imported := range pkg.Types.Imports() {
		if _, ours := tree.Below(imported.Path()); ours {
			continue
		}
		for _, name := range imported.Scope().Names() {
			declared, ok := imported.Scope().Lookup(name).(*types.TypeName)
			if ok && declared.Exported() && !isGeneric(declared.Type()) {
				found = interfaceOf(found, declared.Type())
			}
		}
	}
	return append(found, instancesOutside(tree, pkg)...)
}

// instancesOutside returns the instances of generic interfaces that the package uses.
func instancesOutside(tree *source.Tree, pkg *source.Package) []*types.Interface {
	var found []*types.Interface
	for _, used := range pkg.Info.Types {
		named, ok := used.Type.(*types.Named)
		if !ok || named.TypeArgs() == nil || named.Obj().Pkg() == nil {
			continue
		}
		if _, ours := tree.Below(named.Obj().Pkg().Path()); !ours {
			found = interfaceOf(found, named)
		}
	}
	return found
}

// interfaceOf appends the type if it is an interface.
func interfaceOf(all []*types.Interface, of types.Type) []*types.Interface {
	if one, ok := of.Underlying().(*types.Interface); ok {
		all = append(all, one)
	}
	return all
}

func isGeneric(of types.Type) bool {
	named, ok := of.(*types.Named)
	return ok && named.TypeParams() != nil
}
