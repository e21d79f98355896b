package main

import (
	"strings"
	"testing"
)

// TestWhatIsMissingIsNamed expects that every error says what to do.
func TestWhatIsMissingIsNamed(t *testing.T) {
	tests := map[string]struct {
		options options
		want    string
	}{
		"no command for Kopf": {options{a: kopf, b: workTree}, "set -kopf or KOPF_COMMAND"},
		"no program":          {options{a: kopf, b: workTree, kopf: "no-such-kopf run {file}"}, "install Kopf"},
		"other handlers":      {options{a: served, b: workTree}, "serve has the handlers of Kopf, which have no order: swap it with kopf"},
		"no such ref":         {options{a: "no-such-ref", b: workTree}, `"no-such-ref" is neither a git ref`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := prepare(t.Context(), t.TempDir(), test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestHandlersOfKopfAreTheSame expects that both operators declare the same ids.
func TestHandlersOfKopfAreTheSame(t *testing.T) {
	var sources string
	for _, name := range []string{"main", "later"} {
		text, err := operatorSources.ReadFile("operator/" + name + ".go")
		if err != nil {
			t.Fatal(err)
		}
		sources += string(text)
	}
	for _, id := range handlerIDs {
		if strings.HasPrefix(id, "parent/") {
			continue // the objects name them
		}
		quoted := `"` + id + `"`
		if !strings.Contains(string(kopfHandlers), quoted) || !strings.Contains(sources, quoted) {
			t.Errorf("not both operators have %s", quoted)
		}
	}
}
