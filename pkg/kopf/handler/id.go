package handler

import (
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"strings"
)

// closure is how the compiler names function literals: main.main.func1, and
// main.init.func2 or main.glob..func3 for those of package variables.
var closure = regexp.MustCompile(`\.func\d+(\.\d+)*$|\.gowrap\d+$`)

// identity is the address of a function's code: what tells two functions apart.
func identity(fn any) uintptr { return reflect.ValueOf(fn).Pointer() }

// nameOf derives a handler's id from its function, as the specification does. A
// function literal has no name that would survive the next edit of the source.
func nameOf(fn any) (string, error) {
	full := runtime.FuncForPC(identity(fn)).Name()
	full, _, _ = strings.Cut(full, "[") // type arguments
	if closure.MatchString(full) {
		return "", fmt.Errorf("a function literal has no name to keep its progress under: add kopf.ID(%q)", "my_handler")
	}
	name := full[strings.LastIndexByte(full, '.')+1:]
	return strings.TrimSuffix(name, "-fm"), nil // a method value
}

// placeOf is the first caller outside the project, where the developer declared
// the handler.
func placeOf() string {
	var counters [16]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	for {
		frame, more := frames.Next()
		if !isOurs(frame.Function) || strings.HasSuffix(frame.File, "_test.go") {
			return fmt.Sprintf("%s:%d", shortFile(frame.File), frame.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}

func isOurs(function string) bool {
	return strings.HasPrefix(function, "github.com/kopf-go/kopf/pkg/kopf")
}

// shortFile keeps the last two parts of a path: enough to find the file.
func shortFile(file string) string {
	parts := strings.Split(file, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}
