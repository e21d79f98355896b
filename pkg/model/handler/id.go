package handler

import (
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"unsafe"
)

var (
	// literal is how the compiler names function literals within a package:
	// main.func1, and init.func2 or glob..func3 for those of package variables.
	functionLiteral = regexp.MustCompile(`^[^.]+\..+\.(func|gowrap)\d+(\.\d+)*$`)
	// typeArguments are those of a generic function or type.
	typeArguments = regexp.MustCompile(`\[[^]]*\]`)
)

// symbol is the name of a function in the binary, without the path to its
// package and without type arguments: main.createFn, or main.(*Type).create-fm
// for a method value.
func symbol(fn any) string {
	full := runtime.FuncForPC(reflect.ValueOf(fn).Pointer()).Name()
	full = typeArguments.ReplaceAllString(full, "")
	return full[strings.LastIndexByte(full, '/')+1:]
}

// nameOf derives a handler's id from its function, as the specification does. A
// function literal has no name that would survive the next edit of the source.
func nameOf(fn any) (string, error) {
	name := symbol(fn)
	if functionLiteral.MatchString(name) {
		return "", fmt.Errorf("a function literal has no name that could be the id of the handler: add kopf.ID(%q)", "my_handler")
	}
	name = name[strings.LastIndexByte(name, '.')+1:]
	return strings.TrimSuffix(name, "-fm"), nil
}

// callerPosition is the first caller outside the project, where the developer declared
// the handler.
func callerPosition() string {
	var counters [16]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	for {
		frame, more := frames.Next()
		if !isLibraryFunction(frame.Function) || strings.HasSuffix(frame.File, "_test.go") {
			return fmt.Sprintf("%s:%d", shortFile(frame.File), frame.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}

// isLibraryFunction reports whether the function belongs to a package of this library.
func isLibraryFunction(function string) bool {
	return strings.HasPrefix(function, "github.com/kopf-go/kopf/pkg/")
}

// shortFile keeps the last two parts of a path: enough to find the file.
func shortFile(file string) string {
	parts := strings.Split(file, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}

// identity tells functions apart, and two values of one function too: methods of
// different receivers, or closures over different variables, have the same code
// and do different things.
type identity struct {
	code  uintptr
	value unsafe.Pointer
}

// identityOf looks behind the language, which compares functions with nil only.
// A function value points to a record in memory: the address of the code, then
// what the function carries along. One function without anything to carry has
// one such record; every other evaluation makes a new one. So two evaluations of
// x.Method would differ, if it were not for the receiver, which comes next to
// the code; where that is a pointer, it is what matters.
func identityOf(fn any) identity {
	function := reflect.ValueOf(fn)
	variable := reflect.New(function.Type())
	variable.Elem().Set(function)
	record := *(*unsafe.Pointer)(variable.UnsafePointer())
	id := identity{code: function.Pointer(), value: record}
	if name := symbol(fn); record != nil && strings.Contains(name, ".(*") && strings.HasSuffix(name, "-fm") {
		id.value = *(*unsafe.Pointer)(unsafe.Add(record, unsafe.Sizeof(record)))
	}
	return id
}
