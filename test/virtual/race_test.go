//go:build race

package virtual

import (
	"os"
	"runtime"
	"testing"
)

// TestMain runs the tests on one processor. The race detector of Go 1.26 crashes if two goroutines of a
// bubble run timers at the same time, because all timers of a bubble share one context of the detector:
// timers that are due when they are set run in the goroutine that sets them.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}
