package controlplane

import (
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	tests := map[string]struct {
		written string
		want    int
	}{
		"short output is complete":       {"one\ntwo\n", len("one\ntwo\n")},
		"long output begins with a line": {strings.Repeat(line, 1000), tailSize / 100 * 100},
		"a line that is too long is cut": {strings.Repeat("x", 10*tailSize), tailSize},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			end := &tail{}
			for rest := test.written; rest != ""; {
				n := min(70, len(rest))
				_, _ = end.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			if got := end.String(); len(got) != test.want || !strings.HasSuffix(test.written, got) {
				t.Errorf("got %d bytes, want %d: %q", len(got), test.want, got)
			}
		})
	}
}
