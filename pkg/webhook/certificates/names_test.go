package certificates

import (
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	tests := map[string]struct{ candidates, want []string }{
		"host names come first":              {[]string{"127.0.0.1", "host", "::1", "other"}, []string{"host", "other", "127.0.0.1", "::1"}},
		"unspecified addresses are left out": {[]string{"0.0.0.0", "::", "host", ""}, []string{"host"}},
		"duplicates are left out":            {[]string{"host", "host", "::1", "0:0:0:0:0:0:0:1"}, []string{"host", "::1"}},
		"an address can be the only name":    {[]string{"10.0.0.1"}, []string{"10.0.0.1"}},
		"no candidates":                      {nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Names(test.candidates...); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
