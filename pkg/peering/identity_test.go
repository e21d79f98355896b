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
		"person in a pod": {"default/pod-1", ManualIdentity, `^default/pod-1$`, true},
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

func TestHostName(t *testing.T) {
	tests := map[string]struct {
		names []string
		want  string
	}{
		"without a name service":           {nil, "laptop"},
		"a qualified name":                 {[]string{"laptop", "laptop.example.com"}, "laptop.example.com"},
		"a name without a domain":          {[]string{"localhost", "desk"}, "desk"},
		"only localhost":                   {[]string{"localhost"}, "laptop"},
		"addresses are not names":          {[]string{"10.0.0.1", "fe80::1", "1.0.0.127.in-addr.arpa"}, "laptop"},
		"suffixes that say nothing go":     {[]string{"laptop.local.localdomain"}, "laptop"},
		"only suffixes at the end go":      {[]string{"laptop.local.example.com"}, "laptop.local.example.com"},
		"a name that ends like the suffix": {[]string{"my.nonlocal"}, "my.nonlocal"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := hostName("laptop", test.names); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
