package main

import (
	"bytes"
	"testing"
)

func TestConsolePrefixesTheLinesOfAProcess(t *testing.T) {
	tests := map[string]struct {
		pieces []string
		want   string
	}{
		"whole lines":        {[]string{"one\ntwo\n"}, "[op] one\n[op] two\n"},
		"a line in pieces":   {[]string{"o", "ne\nt", "wo\n"}, "[op] one\n[op] two\n"},
		"an unfinished line": {[]string{"one\ntwo"}, "[op] one\n[op] two\n"},
		"an empty line":      {[]string{"\n"}, "[op] \n"},
		"no output":          {nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var terminal bytes.Buffer
			stream := newConsole(&terminal).prefixed("op")
			for _, piece := range test.pieces {
				if _, err := stream.Write([]byte(piece)); err != nil {
					t.Fatal(err)
				}
			}
			stream.flush()
			if terminal.String() != test.want {
				t.Errorf("got %q, want %q", terminal.String(), test.want)
			}
		})
	}
}
