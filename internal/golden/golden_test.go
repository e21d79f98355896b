package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTextsAreComparedBySection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sentences.golden")
	written := In(path)
	written.Write(t, "b", "It is ready.\n\nNotes\n  - none\n")
	written.Write(t, "a", "It waits.")
	read := In(path)
	for section, text := range map[string]string{"a": "It waits.\n", "b": "It is ready.\n\nNotes\n  - none"} {
		if difference := read.Difference(section, text); difference != "" {
			t.Error(difference)
		}
	}
	for text, want := range map[string]string{
		"It is ready.\n\nNotes\n  - one":            "want   - none",
		"It is ready.\n\nNotes\n  - none\n  - more": "got    - more",
		"It is ready.": "got  (the end)",
	} {
		if got := read.Difference("b", text); !strings.Contains(got, want) {
			t.Errorf("there is no %q in %s", want, got)
		}
	}
	if got := read.Difference("c", ""); !strings.Contains(got, "has no section") {
		t.Errorf("got %q", got)
	}
	if got := In(path+"x").Difference("a", ""); !strings.Contains(got, "has no section") {
		t.Errorf("got %q", got)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "## a\n\nIt waits.\n\n## b\n\n") {
		t.Errorf("got %q, %v", text, err)
	}
}
