package peering

import (
	"regexp"
	"testing"
)

func TestIdentities(t *testing.T) {
	tests := map[string]struct {
		pod    string
		make   func() string
		want   string
		stable bool
	}{
		"a process":              {"", NewIdentity, `^[^@/]+@[^@/]+/\d{14}/[a-z0-9]{6}$`, false},
		"a pod":                  {"default/pod-1", NewIdentity, `^default/pod-1$`, true},
		"a person":               {"", ManualIdentity, `^[^@/]+@[^@/]+$`, true},
		"a person inside of pod": {"default/pod-1", ManualIdentity, `^[^@/]+@[^@/]+$`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(podVariable, test.pod)
			first, second := test.make(), test.make()
			if !regexp.MustCompile(test.want).MatchString(first) || (first == second) != test.stable {
				t.Errorf("got %q and %q", first, second)
			}
		})
	}
}
