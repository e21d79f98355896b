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
		"process":         {"", NewIdentity, `^[^@/]+@[^@/]+/\d{14}/[a-z0-9]{6}$`, false},
		"pod":             {"default/pod-1", NewIdentity, `^default/pod-1$`, true},
		"person":          {"", ManualIdentity, `^[^@/]+@[^@/]+$`, true},
		"person in a pod": {"default/pod-1", ManualIdentity, `^[^@/]+@[^@/]+$`, true},
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
