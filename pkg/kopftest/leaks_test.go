package kopftest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// recorder collects the errors of a test.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, arguments ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, arguments...))
}

func TestLeaksAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clean, leaking := &recorder{TB: t}, &recorder{TB: t}
		reportLeaks(clean)
		if len(clean.errors) != 0 {
			t.Errorf("got %v", clean.errors)
		}
		release := make(chan struct{})
		go func() { <-release }()
		reportLeaks(leaking)
		if len(leaking.errors) != 1 || !strings.Contains(leaking.errors[0], "TestLeaksAreReported") {
			t.Errorf("got %v", leaking.errors)
		}
		close(release)
	})
}
