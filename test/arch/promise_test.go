package arch

import (
	"context"
	"fmt"
	"go/types"
	"slices"
	"sync"
	"testing"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/hack/source"
)

// typed returns the packages under pkg with their types, loaded once for all tests.
var typed = sync.OnceValues(func() (*source.Tree, error) {
	root, err := assets.Root()
	if err != nil {
		return nil, err
	}
	return source.Load(context.Background(), root, "./pkg/...")
})

// Users must be able to write down every type that they get from a promised package,
// or pass to it.
func TestUsersCanNameTheTypesOfPromisedPackages(t *testing.T) {
	tree, err := typed()
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range unnameable(tree) {
		t.Error(found)
	}
}

// forOurselves is the method of a promised type for the other packages of this module.
const forOurselves = "pkg/kopf.Registry.Declarations"

// unnameable returns a sentence for every part of the promised API with a type of
// this module that has a name in no promised package.
func unnameable(tree *source.Tree) []string {
	l := &leaks{tree: tree, nameable: nameable(tree)}
	for _, pkg := range tree.Promised() {
		scope := pkg.Types.Scope()
		for _, name := range scope.Names() {
			object := scope.Lookup(name)
			if !object.Exported() {
				continue
			}
			l.where = pkg.Path + "." + name
			if declared, ok := object.(*types.TypeName); ok {
				l.declaration(declared)
			} else {
				l.mentioned(object.Type())
			}
		}
	}
	slices.Sort(l.found)
	return slices.Compact(l.found)
}

// nameable returns the types that promised packages declare or alias.
func nameable(tree *source.Tree) map[*types.TypeName]bool {
	found := map[*types.TypeName]bool{}
	for _, pkg := range tree.Promised() {
		scope := pkg.Types.Scope()
		for _, name := range scope.Names() {
			declared, ok := scope.Lookup(name).(*types.TypeName)
			if !ok || !declared.Exported() {
				continue
			}
			if named, ok := types.Unalias(declared.Type()).(*types.Named); ok {
				found[named.Origin().Obj()] = true
			}
		}
	}
	return found
}

// leaks collects the types without a name for users.
type leaks struct {
	tree     *source.Tree
	nameable map[*types.TypeName]bool
	// where is the part of the API that is looked at.
	where string
	found []string
}

// declaration looks at everything that users can reach through a declared type: what
// it is made of, and its methods, also if a promised package only aliases it.
func (l *leaks) declaration(declared *types.TypeName) {
	named, ok := types.Unalias(declared.Type()).(*types.Named)
	if !ok {
		l.mentioned(declared.Type())
		return
	}
	if _, ours := l.tree.Below(pathOf(named.Obj())); !ours {
		return
	}
	l.parameters(named.TypeParams())
	if basic, ok := named.Underlying().(*types.Struct); ok {
		l.fields(basic)
	} else {
		l.mentioned(named.Underlying())
	}
	where := l.where
	for method := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if name := where + "." + method.Obj().Name(); method.Obj().Exported() && name != forOurselves {
			l.where = name
			l.mentioned(method.Obj().Type())
		}
	}
	l.where = where
}

// fields looks at the exported fields of a struct, and at those that are promoted
// from unexported ones.
func (l *leaks) fields(of *types.Struct) {
	where := l.where
	for field := range of.Fields() {
		nested, isStruct := dereference(field.Type()).Underlying().(*types.Struct)
		switch {
		case field.Exported():
			l.where = where + "." + field.Name()
			l.mentioned(field.Type())
			l.where = where
		case field.Embedded() && isStruct:
			l.fields(nested)
		}
	}
}

// mentioned looks at a type in a signature, and at the types that it consists of.
func (l *leaks) mentioned(of types.Type) {
	switch of := types.Unalias(of).(type) {
	case *types.Named:
		l.named(of)
	case *types.Pointer:
		l.mentioned(of.Elem())
	case *types.Slice:
		l.mentioned(of.Elem())
	case *types.Array:
		l.mentioned(of.Elem())
	case *types.Chan:
		l.mentioned(of.Elem())
	case *types.Map:
		l.mentioned(of.Key())
		l.mentioned(of.Elem())
	case *types.Struct:
		l.fields(of)
	case *types.Signature:
		l.parameters(of.TypeParams())
		for variable := range of.Params().Variables() {
			l.mentioned(variable.Type())
		}
		for variable := range of.Results().Variables() {
			l.mentioned(variable.Type())
		}
	case *types.Interface:
		l.required(of)
	case *types.Union:
		for term := range of.Terms() {
			l.mentioned(term.Type())
		}
	}
}

func (l *leaks) named(of *types.Named) {
	origin := of.Origin().Obj()
	if below, ours := l.tree.Below(pathOf(origin)); ours && !l.nameable[origin] {
		l.found = append(l.found, fmt.Sprintf("%s mentions %s.%s, which users cannot name: export it, or alias it, in a promised package",
			l.where, below, origin.Name()))
	}
	for argument := range of.TypeArgs().Types() {
		l.mentioned(argument)
	}
}

// required looks at the methods that an interface requires, and at the types that it
// permits as a constraint.
func (l *leaks) required(of *types.Interface) {
	for method := range of.Methods() {
		if method.Exported() {
			l.mentioned(method.Type())
		}
	}
	for embedded := range of.EmbeddedTypes() {
		if union, ok := embedded.(*types.Union); ok {
			l.mentioned(union)
		}
	}
}

func (l *leaks) parameters(of *types.TypeParamList) {
	for parameter := range of.TypeParams() {
		l.mentioned(parameter.Constraint())
	}
}

// pathOf returns the import path of a type's package. A type of the language has none.
func pathOf(declared *types.TypeName) string {
	if declared.Pkg() == nil {
		return ""
	}
	return declared.Pkg().Path()
}

func dereference(of types.Type) types.Type {
	if pointer, ok := of.(*types.Pointer); ok {
		return pointer.Elem()
	}
	return of
}
