package binaries

import "testing"

func TestBuildLog(t *testing.T) {
	tests := map[string]struct {
		pieces         []string
		sum, complaint string
	}{
		"no output":             {nil, "0 packages compiled", ""},
		"packages are counted":  {[]string{"runtime\nfmt\n"}, "2 packages compiled, now fmt", ""},
		"lines in pieces":       {[]string{"runt", "ime\nf", "mt\n"}, "2 packages compiled, now fmt", ""},
		"downloads are counted": {[]string{"go: downloading example.com/a v1.0.0\n"}, "1 modules downloaded, 0 packages compiled, now example.com/a v1.0.0", ""},
		"errors and unfinished lines are kept": {
			[]string{"fmt\n# example.com/a\na.go:1:2: no such thing\nexit"},
			"1 packages compiled, now fmt", "# example.com/a\na.go:1:2: no such thing\nexit",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			log := &buildLog{}
			for _, piece := range test.pieces {
				if n, err := log.Write([]byte(piece)); n != len(piece) || err != nil {
					t.Fatalf("Write: %d, %v", n, err)
				}
			}
			if log.String() != test.sum || log.complaints() != test.complaint {
				t.Errorf("got %q and %q", log.String(), log.complaints())
			}
		})
	}
}

func TestBuildLogKeepsTheEndOfLongOutput(t *testing.T) {
	log := &buildLog{}
	for range 3 * maxComplaints {
		_, _ = log.Write([]byte("a line\n"))
	}
	if len(log.other) != maxComplaints {
		t.Errorf("%d lines kept", len(log.other))
	}
}
