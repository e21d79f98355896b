package handler

import (
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"strings"
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

// placeOf is the first caller outside the project, where the developer declared
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

// isOurs reports whether the function belongs to a package of this library.
func isLibraryFunction(function string) bool {
	return strings.HasPrefix(function, "github.com/kopf-go/kopf/pkg/")
}

// shortFile keeps the last two parts of a path: enough to find the file.
func shortFile(file string) string {
	parts := strings.Split(file, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}
