package main

import (
	"fmt"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/hack/source"
)

// describer writes the API of one package.
type describer struct {
	pkg     *types.Package
	imports map[string]bool
	text    strings.Builder
}

// paragraphs are separated by one empty line.
var paragraphs = regexp.MustCompile("\n{3,}")

// describe returns the API of a package: its constants, variables, functions, and
// types with their exported fields and methods, sorted by name.
func describe(pkg *source.Package) string {
	d := &describer{pkg: pkg.Types, imports: map[string]bool{}}
	scope := pkg.Types.Scope()
	for _, kind := range []func(types.Object){d.constant, d.variable, d.function, d.typeName} {
		d.printf("\n")
		for _, name := range scope.Names() {
			if object := scope.Lookup(name); object.Exported() {
				kind(object)
			}
		}
	}
	header := fmt.Sprintf("package %s // import %q\n\n", pkg.Types.Name(), pkg.Types.Path())
	for _, path := range slices.Sorted(maps.Keys(d.imports)) {
		header += fmt.Sprintf("import %q\n", path)
	}
	return header + paragraphs.ReplaceAllString(d.text.String(), "\n\n")
}

// qualify names packages as in source code, and remembers them.
func (d *describer) qualify(pkg *types.Package) string {
	if pkg == d.pkg {
		return ""
	}
	d.imports[pkg.Path()] = true
	return pkg.Name()
}

func (d *describer) printf(format string, args ...any) { fmt.Fprintf(&d.text, format, args...) }

func (d *describer) of(one types.Type) string { return types.TypeString(one, d.qualify) }

func (d *describer) constant(object types.Object) {
	if constant, ok := object.(*types.Const); ok {
		of := " " + d.of(constant.Type())
		if basic, ok := constant.Type().(*types.Basic); ok && basic.Info()&types.IsUntyped != 0 {
			of = ""
		}
		d.printf("const %s%s = %s\n", constant.Name(), of, constant.Val().ExactString())
	}
}

func (d *describer) variable(object types.Object) {
	if variable, ok := object.(*types.Var); ok {
		d.printf("var %s %s\n", variable.Name(), d.of(variable.Type()))
	}
}

func (d *describer) function(object types.Object) {
	if function, ok := object.(*types.Func); ok {
		d.printf("func %s%s\n", function.Name(), d.signature(function))
	}
}

func (d *describer) signature(function *types.Func) string {
	return strings.TrimPrefix(d.of(function.Type()), "func")
}

// typeName describes a type. An alias needs no more than its target, whose members
// are in the record of the target's package; if that is not recorded, they are
// described with the alias.
func (d *describer) typeName(object types.Object) {
	declared, ok := object.(*types.TypeName)
	if !ok {
		return
	}
	alias, ok := declared.Type().(*types.Alias)
	if !ok {
		d.printf("\ntype %s %s\n", d.of(declared.Type()), d.underlying(declared.Type()))
		d.methods(declared.Type())
		return
	}
	d.printf("\ntype %s = %s\n", d.of(alias), d.of(alias.Rhs()))
	if target, named := alias.Rhs().(*types.Named); named && d.isHidden(target.Obj()) {
		d.printf("// which is %s\n", d.underlying(target))
		d.methods(target)
	}
}

// isHidden reports whether a type is declared in a package of this module that has no
// record.
func (d *describer) isHidden(target *types.TypeName) bool {
	if target.Pkg() == nil {
		return false
	}
	module, _, _ := strings.Cut(d.pkg.Path(), "/pkg/")
	below, ours := strings.CutPrefix(target.Pkg().Path(), module+"/")
	return ours && !source.IsPromised(below)
}

// underlying returns what a type is: what users can name of a struct or of an
// interface, and the whole of another type.
func (d *describer) underlying(of types.Type) string {
	switch under := of.Underlying().(type) {
	case *types.Struct:
		fields, hidden := d.fields(under)
		if hidden {
			fields += "\t// and unexported fields\n"
		}
		return "struct {\n" + fields + "}"
	case *types.Interface:
		if under.IsMethodSet() {
			return "interface {\n" + d.required(under) + "}"
		}
	}
	return d.of(of.Underlying())
}

// fields returns the exported fields of a struct, those promoted from unexported
// structs included, and whether there are others.
func (d *describer) fields(of *types.Struct) (text string, hidden bool) {
	for i := range of.NumFields() {
		field := of.Field(i)
		nested, isStruct := dereference(field.Type()).Underlying().(*types.Struct)
		switch {
		case field.Exported() && field.Embedded():
			text += "\t" + d.of(field.Type()) + "\n"
		case field.Exported():
			text += "\t" + strings.TrimSpace(field.Name()+" "+d.of(field.Type())+" "+of.Tag(i)) + "\n"
		case field.Embedded() && isStruct:
			promoted, _ := d.fields(nested)
			text += promoted
			hidden = true
		default:
			hidden = true
		}
	}
	return text, hidden
}

// required returns the methods of an interface, those of embedded ones included.
func (d *describer) required(of *types.Interface) string {
	text, hidden := "", ""
	for method := range of.Methods() {
		if method.Exported() {
			text += "\t" + method.Name() + d.signature(method) + "\n"
		} else {
			hidden = "\t// and unexported methods\n"
		}
	}
	return text + hidden
}

// methods describes the methods of a type that is no interface. Those promoted from
// an exported field are part of that field's type.
func (d *describer) methods(of types.Type) {
	if types.IsInterface(of) {
		return
	}
	values := types.NewMethodSet(of)
	for method := range types.NewMethodSet(types.NewPointer(of)).Methods() {
		function, ok := method.Obj().(*types.Func)
		if !ok || !function.Exported() || throughExported(method) {
			continue
		}
		pointer := "*"
		if values.Lookup(nil, function.Name()) != nil {
			pointer = ""
		}
		d.printf("func (%s%s) %s%s\n", pointer, receiver(of), function.Name(), d.signature(function))
	}
}

// receiver returns the name of a type, with the names of its parameters.
func receiver(of types.Type) string {
	named, ok := of.(*types.Named)
	if !ok {
		return of.String()
	}
	var parameters []string
	for parameter := range named.TypeParams().TypeParams() {
		parameters = append(parameters, parameter.Obj().Name())
	}
	if parameters == nil {
		return named.Obj().Name()
	}
	return named.Obj().Name() + "[" + strings.Join(parameters, ", ") + "]"
}

// throughExported reports whether the method is promoted from an exported field.
func throughExported(method *types.Selection) bool {
	of := method.Recv()
	for _, index := range method.Index()[:len(method.Index())-1] {
		under, ok := dereference(of).Underlying().(*types.Struct)
		if !ok || under.Field(index).Exported() {
			return ok
		}
		of = under.Field(index).Type()
	}
	return false
}

func dereference(of types.Type) types.Type {
	if pointer, ok := of.(*types.Pointer); ok {
		return pointer.Elem()
	}
	return of
}
