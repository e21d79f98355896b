package main

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/kopf-go/kopf/hack/source"
)

// names counts the unexported functions and methods of the library whose name has more
// than one meaning. The whole of a share counts all meanings; its part counts the meanings
// whose name has another meaning in the same package (within) or in any package (overall).
// All implementations of an interface of the package have one meaning, and so do the
// functions validate and fill in the package settings. In declared, which can be compared
// with other projects, every declaration within a package is a meaning. Generated files and
// the functions init and main do not count.
type names struct {
	within, overall, declared share
	// ambiguous are the names with several meanings within one package, as
	// package.name, with the number of meanings; the most come first.
	ambiguous []counted
}

// settingsPackage is the package whose functions and methods validate and fill have
// one meaning each.
const settingsPackage = "settings"

func namesOf(library []*source.Package) names {
	var found names
	overall := map[string]int{}
	for _, pkg := range library {
		meanings, declarations := meaningsIn(pkg)
		for _, count := range declarations {
			found.declared.add(count)
		}
		for name, count := range meanings {
			overall[name] += count
			found.within.add(count)
			if count > 1 {
				found.ambiguous = append(found.ambiguous, counted{pkg.Path + "." + name, count})
			}
		}
	}
	for _, count := range overall {
		found.overall.add(count)
	}
	slices.SortFunc(found.ambiguous, largestFirst)
	return found
}

// add counts a name with its number of occurrences. A name with one occurrence does not
// belong to the part.
func (s *share) add(count int) {
	s.of += count
	if count > 1 {
		s.part += count
	}
}

// meaningsIn returns the number of meanings that a name has in a package, and the
// number of its declarations.
func meaningsIn(pkg *source.Package) (meanings, declarations map[string]int) {
	interfaces := interfacesIn(pkg)
	meanings, declarations = map[string]int{}, map[string]int{}
	once := map[string]bool{}
	for _, declared := range declaredFunctions(pkg) {
		name := declared.Name.Name
		if declared.Name.IsExported() || name == "_" || name == "init" || name == "main" {
			continue
		}
		declarations[name]++
		shared := sharedMeaning(pkg, declared, interfaces)
		if shared != "" && once[shared] {
			continue
		}
		once[shared] = true
		meanings[name]++
	}
	return meanings, declarations
}

// sharedMeaning returns a key that is the same for all methods that mean the same as
// the declared one; it is empty for a function or method with a meaning that no other
// shares.
func sharedMeaning(pkg *source.Package, declared *ast.FuncDecl, interfaces []*types.Interface) string {
	owner, name := receiverOf(pkg, declared), declared.Name.Name
	switch {
	case pkg.Types.Name() == settingsPackage && (name == "validate" || name == "fill"):
		return name
	case owner == nil:
		return ""
	}
	for _, one := range interfaces {
		if requiredOf(owner, []*types.Interface{one})[name] || isGeneric(owner.Type()) && hasMethod(one, name) {
			return name
		}
	}
	return ""
}

// hasMethod reports whether the interface has the method. For the methods of generic
// types this must do, because a type without arguments implements no interface that
// mentions them.
func hasMethod(one *types.Interface, name string) bool {
	for method := range one.Methods() {
		if method.Name() == name {
			return true
		}
	}
	return false
}

// interfacesIn returns the interfaces that the package declares or uses, with
// unexported methods: these cannot be those of another package.
func interfacesIn(pkg *source.Package) []*types.Interface {
	var found []*types.Interface
	seen := map[types.Type]bool{}
	for _, used := range pkg.Info.Types {
		if !used.IsType() || seen[used.Type] {
			continue
		}
		seen[used.Type] = true
		one, ok := used.Type.Underlying().(*types.Interface)
		if ok && slices.ContainsFunc(slices.Collect(one.Methods()), func(method *types.Func) bool { return !method.Exported() }) {
			found = append(found, one)
		}
	}
	return found
}
