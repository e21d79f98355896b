package arch

import (
	"go/types"
	"testing"

	"github.com/kopf-go/kopf/hack/source"
)

// A user's function can return what a function of the facade returns, without an import of
// another package of this module.
func TestFacadeNamesTheTypesOfItsFunctions(t *testing.T) {
	tree, err := typed()
	if err != nil {
		t.Fatal(err)
	}
	facade := facadeOf(tree)
	l := &leaks{tree: tree, nameable: namesOf(facade)}
	for _, found := range l.functions(facade) {
		t.Error(found)
	}
	blind := &leaks{tree: tree, nameable: map[*types.TypeName]bool{}}
	if len(blind.functions(facade)) == 0 {
		t.Error("the test finds nothing, even if the facade names no type")
	}
}

// facadeOf returns the package that most users import as the only one.
func facadeOf(tree *source.Tree) *types.Package {
	for _, pkg := range tree.Promised() {
		if pkg.Path == "pkg/kopf" {
			return pkg.Types
		}
	}
	return nil
}

// namesOf returns the types that the package declares or aliases.
func namesOf(pkg *types.Package) map[*types.TypeName]bool {
	names := map[*types.TypeName]bool{}
	for _, name := range pkg.Scope().Names() {
		if declared, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok {
			if named, ok := types.Unalias(declared.Type()).(*types.Named); ok {
				names[named.Origin().Obj()] = true
			}
		}
	}
	return names
}

// functions looks at the signatures of the exported functions of a package.
func (l *leaks) functions(of *types.Package) []string {
	for _, name := range of.Scope().Names() {
		if function, ok := of.Scope().Lookup(name).(*types.Func); ok && function.Exported() {
			l.where = name
			l.mentioned(function.Type())
		}
	}
	return l.found
}
