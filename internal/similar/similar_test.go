package similar_test

import (
	"slices"
	"testing"

	"github.com/kopf-go/kopf/internal/similar"
)

func TestWordsWithTypingMistakesAreFound(t *testing.T) {
	known := []string{"create", "charge", "Changed", "charge", "charges", "x", "size"}
	for word, want := range map[string][]string{
		"charge":       {"charge", "charges", "Changed"},
		"cretae":       {"create"},
		"changed":      {"Changed", "charge", "charges"},
		"y":            {"x"},
		"entirely":     nil,
		"":             {"x"},
		"create-other": nil,
		"siez":         {"size"},
		"szie":         {"size"},
	} {
		if got := similar.Words(word, known); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
