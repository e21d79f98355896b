package kopftest

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// bubble is the part of a goroutine's header that names its bubble.
var bubble = regexp.MustCompile(`synctest bubble \d+`)

// reportLeaks fails the test if goroutines of its bubble remain besides the test itself.
// Without it, the bubble would panic, and not say whose they are.
func reportLeaks(t testing.TB) {
	t.Helper()
	synctest.Wait()
	all := strings.Split(string(allStacks()), "\n\n")
	own := bubble.FindString(all[0]) // of this goroutine
	if own == "" {
		return
	}
	for _, stack := range all[1:] {
		header, _, _ := strings.Cut(stack, "\n")
		if bubble.FindString(header) == own && !strings.Contains(stack, "testing/synctest.") {
			t.Errorf("a goroutine remains after the operator has stopped:\n%s", stack)
		}
	}
}

// allStacks returns the stacks of all goroutines, of which most tests have few.
func allStacks() []byte {
	for size := 64 << 10; ; size *= 4 {
		stacks := make([]byte, size)
		if used := runtime.Stack(stacks, true); used < size {
			return stacks[:used]
		}
	}
}
