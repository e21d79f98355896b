//go:build race

package ring

import (
	"os"
	"runtime"
	"testing"
)

// TestMain runs the tests on one processor, as those of test/virtual, for the same reason.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}
