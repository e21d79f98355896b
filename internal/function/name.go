package function

import (
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"strings"
)

var (
	// functionLiteral matches the names that the compiler gives to function literals:
	// main.func1, and init.func2 or glob..func3 for package variables.
	functionLiteral = regexp.MustCompile(`^[^.]+\..+\.(func|gowrap)\d+(\.\d+)*$`)
	// typeArguments matches the type arguments of a generic function or type.
	typeArguments = regexp.MustCompile(`\[[^]]*\]`)
)

// Symbol returns the name of a function as stack traces show it, such as
// example.com/operator/main.createVolume, or main.(*Type).create-fm for a method value. It
// returns "nil" for nil.
func Symbol(fn any) string {
	if symbol := runtime.FuncForPC(reflect.ValueOf(fn).Pointer()); symbol != nil {
		return symbol.Name()
	}
	return "nil"
}

// Name returns the name of a function or method, without its package, receiver, and type
// arguments. It returns false for a function literal, which has no name that survives the
// next edit of the source.
func Name(fn any) (name string, ok bool) {
	name = localSymbol(fn)
	if functionLiteral.MatchString(name) {
		return "", false
	}
	name = name[strings.LastIndexByte(name, '.')+1:]
	return strings.TrimSuffix(name, "-fm"), true
}

// localSymbol returns the symbol of a function without the path of its package and without
// type arguments.
func localSymbol(fn any) string {
	symbol := typeArguments.ReplaceAllString(Symbol(fn), "")
	return symbol[strings.LastIndexByte(symbol, '/')+1:]
}

// Place returns the file and line of a function's body.
func Place(fn any) string {
	symbol := runtime.FuncForPC(reflect.ValueOf(fn).Pointer())
	if symbol == nil {
		return "an unknown place"
	}
	file, line := symbol.FileLine(symbol.Entry())
	return fmt.Sprintf("%s:%d", shortFile(file), line)
}

// Caller returns the file and line of the first caller outside the library, where
// the developer declared the handler.
func Caller() string {
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
	return strings.HasPrefix(function, "github.com/kopf-go/kopf/pkg/") || strings.HasPrefix(function, "github.com/kopf-go/kopf/internal/")
}

// shortFile returns the last two parts of a path, which are enough to find the file.
func shortFile(file string) string {
	parts := strings.Split(file, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}
