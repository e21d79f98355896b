package function

import (
	"slices"
	"strings"
)

// stackFrame is one frame of a stack: the lines with the function and with its place.
type stackFrame struct{ function, place string }

// isLibrary reports whether the frame belongs to this library, but not to its tests.
func (f stackFrame) isLibrary() bool {
	return isLibraryFunction(f.function) && !strings.Contains(f.place, "_test.go:")
}

// isPanic reports whether the frame belongs to the runtime, which raises panics.
func (f stackFrame) isPanic() bool {
	return strings.HasPrefix(f.function, "panic(") || strings.HasPrefix(f.function, "runtime.")
}

// isCall reports whether the frame calls a handler or another function of the developer.
func (f stackFrame) isCall() bool {
	const handlers = "github.com/kopf-go/kopf/internal/handler."
	return strings.HasPrefix(f.function, handlers+"(*Declaration).Call") || strings.HasPrefix(f.function, handlers+"WithRecover(")
}

// TrimStack returns the part of a stack that helps developers to find a panic: from the line
// that panicked to the function that the library has called. The stack is that of a deferred
// function, as debug.Stack returns it. If it does not look as expected, TrimStack returns all
// of it.
func TrimStack(stack []byte) []byte {
	frames := framesOf(string(stack))
	begin := slices.IndexFunc(frames, func(f stackFrame) bool { return strings.HasPrefix(f.function, "panic(") })
	if begin < 0 {
		return stack
	}
	frames = frames[begin:]
	frames = frames[max(0, slices.IndexFunc(frames, func(f stackFrame) bool { return !f.isPanic() })):]
	end := slices.IndexFunc(frames, stackFrame.isCall)
	if end < 0 {
		return stack
	}
	own := end // without the wrappers of the library around the function
	for own > 0 && frames[own-1].isLibrary() {
		own--
	}
	if own == 0 {
		own = end
	}
	if own == 0 {
		return stack
	}
	var lines []string
	for _, f := range frames[:own] {
		lines = append(lines, f.function, f.place)
	}
	return []byte(strings.Join(lines, "\n"))
}

// framesOf parses a stack. Its first line names the goroutine.
func framesOf(stack string) []stackFrame {
	lines := strings.Split(stack, "\n")
	var frames []stackFrame
	for i := 1; i+1 < len(lines); i += 2 {
		frames = append(frames, stackFrame{lines[i], lines[i+1]})
	}
	return frames
}
