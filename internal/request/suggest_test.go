package request_test

import (
	"slices"
	"testing"

	"github.com/kopf-go/kopf/internal/request"
)

func TestIDsAreSuggested(t *testing.T) {
	known := []string{"charge/spec.plan", "charge/spec.plans", "bill", "pay/a", "pay/b", "pay/b", "pay/c", "pay/d"}
	for id, want := range map[string][]string{
		"charge.spec.plan": {"charge/spec.plan"},
		"charge":           {"charge/spec.plan", "charge/spec.plans"},
		"bil":              {"bill"},
		"pay":              {"pay/a", "pay/b", "pay/c"},
		"other":            nil,
	} {
		if got := request.Suggest(id, known); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}

func TestVerbsAreSuggested(t *testing.T) {
	for verb, want := range map[string]request.Verb{
		"retri": request.Retry, "re-run": request.Rerun, "suspended": request.Suspend, "Skip": request.Skip,
		"retry": "", "skip": "", "approval": "", "": "", "s-handled": "",
	} {
		if got := request.SuggestVerb(verb); got != want {
			t.Errorf("%s: got %q, want %q", verb, got, want)
		}
	}
}
