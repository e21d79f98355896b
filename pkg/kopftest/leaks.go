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
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	all := strings.Split(string(stacks), "\n\n")
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
