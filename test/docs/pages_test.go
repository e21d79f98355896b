package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/hack/source"
)

// block is a code block of a page, or a comment with declarations for listings.
type block struct {
	page     string
	line     int // of the first line of the text, from 1
	language string
	text     string
	hidden   bool
}

// fenced matches a block; its groups are the language and the text of a code block, and
// the text of a comment.
var fenced = regexp.MustCompile("(?ms)^(?: *```(\\w*)\n(.*?)^ *```|<!-- go\n(.*?)^-->)$") //nolint:gocritic // with (?m), every ^ matches

// blocksOf returns the blocks of a page in their order.
func blocksOf(page, text string) []block {
	var found []block
	for _, at := range fenced.FindAllStringSubmatchIndex(text, -1) {
		one := block{page: page, language: "go", hidden: true}
		start, end := at[6], at[7]
		if start < 0 {
			start, end, one.language, one.hidden = at[4], at[5], text[at[2]:at[3]], false
		}
		one.text, one.line = text[start:end], 1+strings.Count(text[:start], "\n")
		found = append(found, one)
	}
	return found
}

// pages returns all documents, by their paths below the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found, err := source.Documents(root(t))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestBlocksOf(t *testing.T) {
	text := "# A\n\n<!-- go\nvar x int\n-->\n\n```go\nx++\n```\n\n  ```\n  make run\n  ```\n<!-- a remark -->\n"
	want := []block{{"a.md", 4, "go", "var x int\n", true}, {"a.md", 8, "go", "x++\n", false}, {"a.md", 12, "", "  make run\n", false}}
	got := blocksOf("a.md", text)
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i, one := range got {
		if one != want[i] {
			t.Errorf("got %+v, want %+v", one, want[i])
		}
	}
}
