package isolate

import (
	"runtime"
	"testing"
)

func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		f    func()
		want bool
	}{
		"a function that returns":            {func() {}, true},
		"a function that ends its goroutine": {runtime.Goexit, false},
	} {
		if got := Run(test.f); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
